"""Which messages a subscription is for, and what their ids promise."""

import pytest

from forewarned.core.model import EventSource, EventType, Publishing
from forewarned.core.transitions import EventTransition, Transition
from forewarned.service.subscriptions.content import samples
from forewarned.service.subscriptions.model import (
    STATUS_OF,
    Filter,
    PublishedStatus,
    Subscription,
)
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from tests.builders import NOON, SECOND, A, B, an_event
from tests.service.subscriptions.messages import a_message, a_subscription

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
    one, other = an_event(A), an_event(B)
    id_ = a_message(status, event=one).id

    assert id_ == a_message(status, event=one).id
    assert id_ not in {
        a_message(status, event=one, number=2).id,
        a_message(PublishedStatus.STALLED, event=one).id,
        a_message(status, event=other).id,
        a_message(status, event=one, at=NOON + SECOND).id,
    }


@pytest.mark.parametrize(
    ("status", "publishing", "every_scope", "wanted"),
    [
        ("Scheduled", Publishing(enabled=True), False, True),
        ("Completed", Publishing(enabled=True), False, True),
        ("Scheduled", Publishing(), False, False),
        ("Scheduled", Publishing(), True, True),
        ("Approved", Publishing(enabled=True), True, False),
        ("Stalled", Publishing(enabled=True), True, False),
        ("Scheduled", Publishing(enabled=True, api_version="2017-08-01"), False, True),
    ],
)
def test_event_grid_is_for_scopes_whose_policy_asks_for_it_and_has_azures_statuses(
    status: str, publishing: Publishing, every_scope: bool, wanted: bool
) -> None:
    message = a_message(PublishedStatus(status), publishing=publishing)
    shape = Shape(name=ShapeName.EVENT_GRID, every_scope=every_scope)

    assert a_subscription(shape=shape).wants(message) is wanted
    assert a_subscription().wants(message)


@pytest.mark.parametrize(
    ("subscription", "wants_all"),
    [
        (a_subscription(), True),
        (a_subscription(filter=Filter(vms=("*",))), False),
        (a_subscription(filter=Filter(types=frozenset(EventType))), False),
        (a_subscription(shape=Shape(name=ShapeName.EVENT_GRID)), False),
        (a_subscription(shape=Shape(name=ShapeName.EVENT_GRID, every_scope=True)), False),
    ],
)
def test_only_what_has_no_filter_and_a_shape_for_every_message_wants_all_unseen(
    subscription: Subscription, wants_all: bool
) -> None:
    assert subscription.wants_all is wants_all


def test_what_wants_all_unseen_wants_each() -> None:
    shapes = [Shape(name=name, every_scope=every) for name in ShapeName for every in (False, True)]
    for subscription in (a_subscription(shape=shape) for shape in shapes):
        wanted = [subscription.wants(message) for message in samples()]

        assert all(wanted) or not subscription.wants_all


def test_event_grid_has_no_types_that_the_api_version_of_the_policy_does_not_know() -> None:
    terminate = a_message(
        event=an_event(type=EventType.TERMINATE),
        publishing=Publishing(enabled=True, api_version="2017-08-01"),
    )

    assert not a_subscription(shape=Shape(name=ShapeName.EVENT_GRID)).wants(terminate)


def test_a_subscription_wants_nothing_that_its_filter_does_not_match() -> None:
    subscription = a_subscription(filter=Filter(vms=("db*",)))

    assert not subscription.wants(a_message(vms=["web_0"]))
