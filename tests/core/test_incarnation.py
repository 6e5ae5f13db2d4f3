"""The incarnation is a promise: same number, same events."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from forewarned.core import lifecycle
from forewarned.core.change import Change, published, with_event
from forewarned.core.ids import MaintenanceId, ResourceName
from forewarned.core.model import EventStatus, Scope, StartCause, document
from tests.builders import HOUR, NOON, OPERATOR, A, B, C, a_resource, a_scope, an_event
from tests.core.builders_core import APPROVAL, AZURE, EARLY, a_new_event, approved, shown

STARTED = EventStatus.STARTED
RESOURCES = [a_resource("vm1"), a_resource("vm2")]
SCOPE = a_scope(
    an_event(A, resources=["vm1", "vm2"]),
    an_event(B, resources=["vm1"], maintenance="work1"),
    an_event(C, resources=["vm2"], status=STARTED),
    resources=RESOURCES,
    incarnation=5,
)
UNREAD = a_scope(resources=RESOURCES, incarnation=5, active=False)
VM1 = ResourceName("vm1")


@pytest.mark.parametrize(
    "decide",
    [
        pytest.param(
            lambda s: lifecycle.schedule(s, a_new_event(), rules=AZURE, now=NOON), id="schedule"
        ),
        pytest.param(lambda s: lifecycle.fail(s, a_new_event(), now=NOON), id="fail"),
    ],
)
def test_a_new_event_moves_the_incarnation_by_one_where_it_is_shown(
    decide: Callable[[Scope], Change],
) -> None:
    """I6."""
    read = a_scope(resources=RESOURCES, incarnation=5)

    assert decide(read).scope.incarnation == 6
    assert decide(UNREAD).scope.incarnation == 5


@pytest.mark.parametrize(
    "decide",
    [
        pytest.param(lambda s: approved(s, A), id="start"),
        pytest.param(lambda s: lifecycle.wake(s, rules=AZURE, now=NOON), id="wake"),
        pytest.param(lambda s: lifecycle.cancel(s, A, reason="", now=EARLY), id="cancel"),
        pytest.param(lambda s: lifecycle.complete(s, C, now=EARLY), id="complete"),
        pytest.param(lambda s: lifecycle.remove(s, VM1, now=EARLY), id="remove"),
    ],
)
def test_a_change_that_is_to_be_seen_moves_the_incarnation_by_one(
    decide: Callable[[Scope], Change],
) -> None:
    """I6."""
    change = decide(SCOPE)

    assert shown(change.scope) != shown(SCOPE)
    assert change.scope.incarnation == 6


@pytest.mark.parametrize(
    "decide",
    [
        pytest.param(lambda s: approved(s, B), id="approval of an event that has to wait"),
        pytest.param(lambda s: approved(s, C), id="approval of a started event"),
        pytest.param(lambda s: lifecycle.interrupt(s, C, now=NOON), id="impact"),
        pytest.param(lambda s: lifecycle.read(s, at=NOON), id="read"),
        pytest.param(lambda s: lifecycle.wake(s, rules=AZURE, now=EARLY), id="nothing due"),
        pytest.param(
            lambda s: lifecycle.approve(
                s, [], by=OPERATOR, rules=AZURE, now=EARLY, closed=frozenset()
            ),
            id="approval of nothing",
        ),
    ],
)
def test_a_change_that_nobody_can_see_leaves_the_incarnation_alone(
    decide: Callable[[Scope], Change],
) -> None:
    """I6."""
    change = decide(SCOPE)

    assert shown(change.scope) == shown(SCOPE)
    assert change.scope.incarnation == 5


@pytest.mark.parametrize(
    "hidden",
    [
        {"approval": APPROVAL},
        {"maintenance": MaintenanceId("work2")},
        {"started_at": NOON + HOUR},
        {"start_cause": StartCause.POLICY},
    ],
    ids=lambda hidden: next(iter(hidden)),
)
def test_what_no_document_shows_of_an_event_never_moves_the_incarnation(
    hidden: dict[str, Any],
) -> None:
    """I6."""
    after = with_event(SCOPE, replace(SCOPE.events[C], **hidden))

    assert published(SCOPE, Change(scope=after)).scope.incarnation == SCOPE.incarnation


def test_an_event_that_is_never_shown_never_moves_the_incarnation() -> None:
    """I6."""
    started = lifecycle.schedule(UNREAD, a_new_event(A), rules=AZURE, now=NOON).scope
    read = lifecycle.read(started, at=NOON).scope

    done = lifecycle.complete(read, A, now=NOON + HOUR).scope

    assert done.incarnation == 5


def test_the_document_is_the_incarnation_and_the_events_that_are_shown() -> None:
    """I8, I10."""
    unseen = an_event(B, announced=False)
    scope = a_scope(an_event(A), unseen, an_event(C, status=STARTED), incarnation=7)

    assert document(scope).incarnation == 7
    assert [event.id for event in document(scope).events] == [A, C]


def test_a_life_without_surprises_shows_four_documents() -> None:
    """I6, I18: none, Scheduled, Started, gone."""
    none = a_scope()
    scheduled = lifecycle.schedule(none, a_new_event(A), rules=AZURE, now=NOON).scope
    started = approved(scheduled, A, now=NOON).scope
    gone = lifecycle.complete(started, A, now=NOON + HOUR).scope

    documents = [document(scope) for scope in (none, scheduled, started, gone)]

    assert [doc.incarnation for doc in documents] == [1, 2, 3, 4]
    assert [[event.status.value for event in doc.events] for doc in documents] == [
        [],
        ["Scheduled"],
        ["Started"],
        [],
    ]
