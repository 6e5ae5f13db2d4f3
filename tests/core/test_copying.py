"""Copies of frozen values."""

import dataclasses

import pytest

from forewarned.core.copying import replace
from forewarned.core.model import EventStatus
from tests.builders import an_event


def test_a_copy_differs_in_what_was_asked_for_and_in_nothing_else() -> None:
    event = an_event()

    copy = replace(event, status=EventStatus.STARTED, not_before=None)

    assert copy == dataclasses.replace(event, status=EventStatus.STARTED, not_before=None)
    assert event == an_event()


def test_a_value_of_a_single_field_is_copied_as_any_other() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Single:
        name: str

    assert replace(Single(name="one")) == Single(name="one")
    assert replace(Single(name="one"), name="two") == Single(name="two")


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Event has no field 'colour'$"):
        replace(an_event(), colour="red")  # type: ignore[call-arg]  # what is to be refused
