"""Which messages a subscription is for, and what their ids promise."""

import pytest

from forewarned.core.model import EventSource, EventType
from forewarned.core.transitions import EventTransition, Transition
from forewarned.service.subscriptions.model import (
    STATUS_OF,
    Filter,
    PublishedStatus,
    message_id,
)
from tests.builders import NOON, SECOND, A, B, an_event
from tests.service.subscriptions.messages import a_message

MESSAGE = a_message(
    PublishedStatus.STARTED,
    event=an_event(type=EventType.REBOOT, source=EventSource.USER, resources=["web-1", "web-2"]),
    scope_id="avset/Web",
)


def test_an_empty_filter_takes_everything() -> None:
    assert Filter().matches(MESSAGE)


@pytest.mark.parametrize(
    ("filter_", "taken"),
    [
        (Filter(types=frozenset({EventType.REBOOT, EventType.FREEZE})), True),
        (Filter(types=frozenset({EventType.FREEZE})), False),
        (Filter(statuses=frozenset({PublishedStatus.STARTED})), True),
        (Filter(statuses=frozenset({PublishedStatus.SCHEDULED})), False),
        (Filter(sources=frozenset({EventSource.USER})), True),
        (Filter(sources=frozenset({EventSource.PLATFORM})), False),
        (Filter(scopes=("avset/web",)), True),
        (Filter(scopes=("avset/*",)), True),
        (Filter(scopes=("avset/we",)), False),
        (Filter(scopes=("vm/*", "avset/w?b")), True),
        (Filter(vms=("WEB-*",)), True),
        (Filter(vms=("db-*", "web-2")), True),
        (Filter(vms=("web",)), False),
        (Filter(vms=("web-[3-9]",)), False),
    ],
)
def test_each_part_of_a_filter_takes_what_it_names(filter_: Filter, *, taken: bool) -> None:
    assert filter_.matches(MESSAGE) is taken


def test_all_parts_of_a_filter_must_match() -> None:
    both = Filter(types=frozenset({EventType.REBOOT}), vms=("web-*",))
    one = Filter(types=frozenset({EventType.REBOOT}), vms=("db-*",))

    assert both.matches(MESSAGE)
    assert not one.matches(MESSAGE)


def test_a_message_of_some_vms_of_an_event_is_filtered_by_those() -> None:
    stalled = a_message(PublishedStatus.STALLED, event=MESSAGE.event, vms=["web-2"])

    assert Filter(vms=("web-2",)).matches(stalled)
    assert not Filter(vms=("web-1",)).matches(stalled)


def test_statuses_are_named_after_the_transitions_they_tell_of() -> None:
    assert {kind.__name__ for kind in STATUS_OF} == {status.value for status in PublishedStatus}
    assert all(issubclass(kind, EventTransition) for kind in STATUS_OF)
    assert Transition not in STATUS_OF


def test_an_id_is_the_same_for_the_same_message_and_for_no_other() -> None:
    status = PublishedStatus.STARTED
    id_ = message_id(1, status, A, NOON)

    assert id_ == message_id(1, status, A, NOON)
    assert id_ not in {
        message_id(2, status, A, NOON),
        message_id(1, PublishedStatus.STALLED, A, NOON),
        message_id(1, status, B, NOON),
        message_id(1, status, A, NOON + SECOND),
    }
