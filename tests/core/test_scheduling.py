from datetime import timedelta

import pytest

from forewarned.core import lifecycle
from forewarned.core.errors import (
    BadDurationError,
    DescriptionTooLongError,
    DuplicateEventError,
    DuplicateResourceError,
    NoResourcesError,
    NoticeTooShortError,
    NotSpotError,
    RefusalError,
    SeveralUpdateDomainsError,
    ShortNoticeForbiddenError,
    SpotTerminateError,
    TooManyUserEventsError,
    UnknownResourceError,
)
from forewarned.core.lifecycle import NewEvent
from forewarned.core.model import (
    Event,
    EventSource,
    EventStatus,
    EventType,
    Priority,
    Scope,
    StartCause,
    document,
)
from forewarned.core.rules import Rules
from forewarned.core.transitions import Scheduled, Started
from tests.builders import (
    DAY,
    MINUTE,
    NOON,
    SECOND,
    A,
    B,
    C,
    a_resource,
    a_scope,
    an_event,
    event_id,
)
from tests.core.builders_core import AZURE, EMULATOR, a_new_event, facts, names_of_facts

MICROSECOND = timedelta(microseconds=1)


def test_a_scheduled_event_is_published_with_all_that_was_asked_for() -> None:
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2")])
    new = a_new_event(
        A,
        type=EventType.FREEZE,
        source=EventSource.PLATFORM,
        resources=["vm1", "vm2"],
        notice=20 * MINUTE,
        duration=9 * SECOND,
        description="Host server is undergoing maintenance.",
    )

    change = lifecycle.schedule(scope, new, rules=AZURE, now=NOON)

    event = Event(
        id=A,
        type=EventType.FREEZE,
        status=EventStatus.SCHEDULED,
        source=EventSource.PLATFORM,
        resources=new.resources,
        created_at=NOON,
        not_before=NOON + 20 * MINUTE,
        description="Host server is undergoing maintenance.",
        duration=9 * SECOND,
    )
    assert document(change.scope).events == (event,)
    assert change.transitions == (Scheduled(scope_id=scope.id, at=NOON, event=event),)


def test_the_not_before_of_an_event_is_rounded_up_to_the_second() -> None:
    """I1, I2."""
    now = NOON + MICROSECOND

    change = lifecycle.schedule(a_scope(), a_new_event(A), rules=AZURE, now=now)

    assert change.scope.events[A].not_before == NOON + 15 * MINUTE + SECOND


def test_events_are_shown_in_the_order_they_were_scheduled() -> None:
    change = lifecycle.schedule(a_scope(), a_new_event(B), rules=AZURE, now=NOON)
    change = lifecycle.schedule(change.scope, a_new_event(A), rules=AZURE, now=NOON)
    change = lifecycle.schedule(change.scope, a_new_event(C), rules=AZURE, now=NOON)

    assert [event.id for event in document(change.scope).events] == [B, A, C]


def test_an_event_names_its_vms_in_the_letter_case_of_the_fleet() -> None:
    scope = a_scope(resources=[a_resource("WebRole_IN_0"), a_resource("WebRole_IN_1")])
    new = a_new_event(A, resources=["webrole_in_1", "WEBROLE_IN_0"])

    change = lifecycle.schedule(scope, new, rules=AZURE, now=NOON)

    assert change.scope.events[A].resources == ("WebRole_IN_1", "WebRole_IN_0")


def test_an_operation_on_an_inactive_scope_starts_at_once_and_is_never_shown() -> None:
    scope = a_scope(active=False)

    change = lifecycle.schedule(scope, a_new_event(A), rules=AZURE, now=NOON)

    event = change.scope.events[A]
    assert event.status is EventStatus.STARTED
    assert event.start_cause is StartCause.INACTIVE
    assert event.not_before is None
    assert document(change.scope) == document(scope)
    assert names_of_facts(change) == ["Started"]


def test_short_notice_starts_an_event_as_early_as_asked_in_an_emulator() -> None:
    new = a_new_event(A, notice=2 * SECOND, short_notice=True)

    change = lifecycle.schedule(a_scope(), new, rules=EMULATOR, now=NOON)

    assert change.scope.events[A].not_before == NOON + 2 * SECOND
    with pytest.raises(ShortNoticeForbiddenError):
        lifecycle.schedule(a_scope(), new, rules=AZURE, now=NOON)


def test_no_notice_at_all_starts_an_event_as_it_is_published() -> None:
    new = a_new_event(A, notice=timedelta(0), short_notice=True)

    change = lifecycle.schedule(a_scope(), new, rules=EMULATOR, now=NOON)

    [started] = facts(change, Started)
    assert started.cause is StartCause.NOT_BEFORE
    assert change.scope.events[A].started_at == NOON
    assert names_of_facts(change) == ["Started"]


def test_an_event_of_a_scope_needs_the_notice_that_the_models_of_its_vms_ask_for() -> None:
    """I2."""
    scope = a_scope(resources=[a_resource("vm1", terminate_notice=12 * MINUTE)])
    terminate = a_new_event(A, type=EventType.TERMINATE)

    change = lifecycle.schedule(scope, terminate, rules=AZURE, now=NOON)

    assert change.scope.events[A].not_before == NOON + 12 * MINUTE


SPOT = a_resource("spot", priority=Priority.SPOT)
FLEET = a_scope(
    an_event(A),
    resources=[a_resource("vm1"), a_resource("vm2", update_domain=1), SPOT],
)


@pytest.mark.parametrize(
    ("new", "refusal", "words"),
    [
        pytest.param(a_new_event(B, resources=[]), NoResourcesError, "at least one", id="no VM"),
        pytest.param(
            a_new_event(B, resources=["vm9"]), UnknownResourceError, "'vm9'", id="unknown VM"
        ),
        pytest.param(
            a_new_event(B, resources=["vm1", "VM1"]), DuplicateResourceError, "'VM1'", id="VM twice"
        ),
        pytest.param(a_new_event(A), DuplicateEventError, A, id="id of an open event"),
        pytest.param(
            a_new_event(B, resources=["vm1", "vm2"]),
            SeveralUpdateDomainsError,
            "0, 1",
            id="two update domains",
        ),
        pytest.param(
            a_new_event(B, duration=-SECOND), BadDurationError, "-1s", id="negative duration"
        ),
        pytest.param(
            a_new_event(B, duration=365 * DAY + SECOND),
            BadDurationError,
            "365 days",
            id="duration above a year",
        ),
        pytest.param(
            a_new_event(B, description="x" * 1001),
            DescriptionTooLongError,
            "1001",
            id="too long a description",
        ),
        pytest.param(
            a_new_event(B, type=EventType.PREEMPT),
            NotSpotError,
            "'vm1'",
            id="Preempt of a regular VM",
        ),
        pytest.param(
            a_new_event(B, type=EventType.TERMINATE, resources=["spot"]),
            SpotTerminateError,
            "'spot'",
            id="Terminate of a Spot VM",
        ),
        pytest.param(
            a_new_event(B, notice=MINUTE), NoticeTooShortError, "1m", id="too little notice"
        ),
    ],
)
def test_an_event_that_would_break_a_rule_is_refused_and_the_refusal_names_what_breaks_it(
    new: NewEvent, refusal: type[RefusalError], words: str
) -> None:
    with pytest.raises(refusal, match=words):
        lifecycle.schedule(FLEET, new, rules=AZURE, now=NOON)


def test_one_event_names_vms_of_one_update_domain_and_the_refusal_says_which_were_named() -> None:
    """I9."""
    with pytest.raises(SeveralUpdateDomainsError) as refused:
        lifecycle.schedule(FLEET, a_new_event(B, resources=["vm2", "vm1"]), rules=AZURE, now=NOON)

    assert refused.value.domains == (0, 1)


def test_a_spot_vm_is_preempted_with_half_a_minute_of_notice() -> None:
    new = a_new_event(B, type=EventType.PREEMPT, resources=["spot"])

    change = lifecycle.schedule(FLEET, new, rules=AZURE, now=NOON)

    assert change.scope.events[B].not_before == NOON + 30 * SECOND


@pytest.mark.parametrize("duration", [timedelta(0), 365 * DAY])
def test_a_duration_is_anything_from_nothing_to_a_year(duration: timedelta) -> None:
    change = lifecycle.schedule(FLEET, a_new_event(B, duration=duration), rules=AZURE, now=NOON)

    assert change.scope.events[B].duration == duration


def with_user_events(count: int) -> Scope:
    scope = a_scope(an_event(C, source=EventSource.PLATFORM))
    for id_ in (A, B)[:count]:
        new = a_new_event(id_, source=EventSource.USER)
        scope = lifecycle.schedule(scope, new, rules=AZURE, now=NOON).scope
    return scope


def test_a_scope_takes_as_many_user_events_as_its_limit_and_no_more() -> None:
    rules = Rules(max_user_events=2)
    another = a_new_event(B, source=EventSource.USER)
    yet_another = a_new_event(event_id(4), source=EventSource.USER)

    change = lifecycle.schedule(with_user_events(1), another, rules=rules, now=NOON)

    assert B in change.scope.events
    with pytest.raises(TooManyUserEventsError) as refused:
        lifecycle.schedule(with_user_events(2), yet_another, rules=rules, now=NOON)
    assert refused.value.limit == 2


def test_the_limit_of_user_events_does_not_hold_the_platform_back() -> None:
    rules = Rules(max_user_events=1)

    change = lifecycle.schedule(with_user_events(1), a_new_event(B), rules=rules, now=NOON)

    assert B in change.scope.events


def test_without_a_limit_any_number_of_user_events_is_taken() -> None:
    assert len(with_user_events(2).events) == 3
