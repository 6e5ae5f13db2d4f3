"""Fields as people type them."""

from datetime import timedelta

import pytest

from forewarned.console.forms import FieldError, Form
from forewarned.core.model import EventType


def test_names_are_taken_once_from_ticks_and_text_in_any_letter_case() -> None:
    form = Form([("vm", "web"), ("vm", "db-0"), ("vms", " WEB,db-1;\n db-2 ")])

    assert form.names() == ("web", "db-0", "db-1", "db-2")


@pytest.mark.parametrize("typed", ["", "-1", "1.5", "six", "٦", "1" * 30, "11"])
def test_a_number_out_of_its_range_is_refused_at_its_field(typed: str) -> None:
    with pytest.raises(FieldError) as refused:
        Form([("capacity", typed)]).whole("capacity", least=0, most=10)

    assert refused.value.field == "capacity"


def test_what_is_left_empty_is_none() -> None:
    form = Form([("notice", " "), ("type", "")])

    assert form.span("notice") is None
    assert form.optional_choice("type", EventType) is None


@pytest.mark.parametrize("typed", ["4", "16", "5m", ""])
def test_a_delay_is_whole_minutes_in_its_range(typed: str) -> None:
    form = Form([("delay", typed)])

    with pytest.raises(FieldError, match="from 5m to 15m"):
        form.minutes("delay", least=timedelta(minutes=5), most=timedelta(minutes=15))


def test_the_last_of_a_field_that_came_twice_counts() -> None:
    assert Form([("notified", "off"), ("notified", "on")]).text("notified") == "on"


def test_a_list_has_one_entry_per_line_and_a_limit() -> None:
    form = Form([("vms", " web-* \r\n\r\ndb ")])

    assert form.lines("vms", most=2) == ("web-*", "db")
    with pytest.raises(FieldError) as refused:
        form.lines("vms", most=1)
    assert refused.value.field == "vms"


def test_a_long_text_keeps_its_spaces_and_has_plain_line_breaks() -> None:
    form = Form([("template", "\r\n a\r\nb "), ("ca", " \r\n")])

    assert form.long_text("template") == "\n a\nb "
    assert form.long_text("ca") == form.long_text("missing") == ""


def test_each_ticked_choice_is_checked() -> None:
    form = Form([("types", "Reboot"), ("types", "Freeze"), ("bad", "Reboot"), ("bad", "Explode")])

    assert form.choices("types", EventType) == {EventType.REBOOT, EventType.FREEZE}
    assert form.choices("none", EventType) == frozenset()
    with pytest.raises(FieldError, match="'Explode' is not one of"):
        form.choices("bad", EventType)
