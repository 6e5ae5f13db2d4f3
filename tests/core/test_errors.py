"""Each refusal says all there is to say, and carries its facts."""

import inspect

import pytest

from forewarned.core import errors
from forewarned.core.errors import Category, RefusalError
from tests.builders import DAY, MINUTE, SECOND, A

REFUSALS = [
    (
        errors.InvalidIdError("seven"),
        {"text": "seven"},
        "event_id",
        "'seven' is not an event id: expected a GUID of 32 hexadecimal digits",
    ),
    (errors.UnknownEventError(A), {"event_id": A}, "event_id", f"event {A} was not found"),
    (errors.DuplicateEventError(A), {"event_id": A}, "event_id", f"event {A} already exists"),
    (errors.UnknownResourceError("vm9"), {"name": "vm9"}, "resources", "no VM is named 'vm9'"),
    (errors.UnknownScopeError("web"), {"scope_id": "web"}, "scope", "no scope is named 'web'"),
    (
        errors.UnknownHostError("host9"),
        {"host": "host9"},
        "host",
        "no VM runs on a host named 'host9'",
    ),
    (errors.NoResourcesError(), {}, "resources", "an event must name at least one VM"),
    (
        errors.DuplicateResourceError("vm1"),
        {"name": "vm1"},
        "resources",
        "VM 'vm1' is named twice",
    ),
    (
        errors.SeveralUpdateDomainsError([2, 0]),
        {"domains": (0, 2)},
        "resources",
        (
            "the VMs are in update domains 0, 2, and an event can only name VMs of one update"
            " domain: schedule one event for each, or maintain the whole set"
        ),
    ),
    (
        errors.NotSpotError("vm1"),
        {"name": "vm1"},
        "resources",
        "VM 'vm1' is not a Spot VM, and only Spot VMs are preempted",
    ),
    (
        errors.SpotTerminateError("vm1"),
        {"name": "vm1"},
        "resources",
        "VM 'vm1' is a Spot VM, and those get no terminate notification",
    ),
    (
        errors.NoticeTooShortError(MINUTE, 15 * MINUTE),
        {"notice": MINUTE, "minimum": 15 * MINUTE},
        "notice",
        (
            "a notice of 1m is below the minimum of 15m for this type of event;"
            " an emulator allows it if you ask for short notice"
        ),
    ),
    (
        errors.NoticeTooLongError(16 * MINUTE, 15 * MINUTE),
        {"notice": 16 * MINUTE, "maximum": 15 * MINUTE},
        "notice",
        "a notice of 16m is above the maximum of 15m",
    ),
    (
        errors.ShortNoticeForbiddenError(),
        {},
        "short_notice",
        "short notice is for emulators; this server enforces the minimum notice",
    ),
    (
        errors.BadDurationError(-SECOND, 365 * DAY),
        {"duration": -SECOND, "longest": 365 * DAY},
        "duration",
        "a duration of -1s is not between zero and 365 days; omit it if it is unknown",
    ),
    (
        errors.DescriptionTooLongError(2, 1),
        {"length": 2, "longest": 1},
        "description",
        "a description of 2 characters is longer than 1",
    ),
    (
        errors.ReasonTooLongError(2, 1),
        {"length": 2, "longest": 1},
        "reason",
        "a reason of 2 characters is longer than 1",
    ),
    (
        errors.TooManyUserEventsError(10),
        {"limit": 10},
        "source",
        (
            "this scope already has the maximum number of open user events, 10: cancel one, or"
            " wait until one is over"
        ),
    ),
    (
        errors.NotOwnResourceError(A),
        {"event_id": A},
        "event_id",
        f"event {A} does not name this VM, and only a VM it names may approve it",
    ),
    (
        errors.AlreadyStartedError(A),
        {"event_id": A},
        "event_id",
        f"event {A} has started and can no longer be canceled",
    ),
    (
        errors.NotStartedError(A),
        {"event_id": A},
        "event_id",
        f"event {A} has not started; approve it, or wait for its NotBefore",
    ),
    (errors.ClosedEventError(A), {"event_id": A}, "event_id", f"event {A} is over"),
    (
        errors.UnknownTaskError("A/vm1"),
        {"key": "A/vm1"},
        "vm",
        "there is no task A/vm1: its VM has no actuator, or its event is over",
    ),
    (
        errors.TaskLostError("A/vm1", 2),
        {"key": "A/vm1", "attempt": 2},
        "attempt",
        "attempt 2 at task A/vm1 is no longer the current attempt",
    ),
    (
        errors.TaskStateError("A/vm1", "Begun", "retried"),
        {"key": "A/vm1", "state": "Begun"},
        "vm",
        "task A/vm1 is Begun, so it can't be retried",
    ),
    (
        errors.MaintenanceConflictError("web", {8, 1}),
        {"scope_id": "web", "domains": frozenset({1, 8})},
        "scope",
        (
            "scope 'web' is under maintenance (update domain 1, 8), and only one update domain of a"
            " set is maintained at a time: try again when that is over, or cancel it"
        ),
    ),
    (
        errors.NotMaintainableError("Preempt"),
        {"type": "Preempt"},
        "type",
        "maintenance is a Freeze, a Reboot or a Redeploy, not a Preempt",
    ),
]
CASES = [pytest.param(*case, id=type(case[0]).__name__) for case in REFUSALS]


@pytest.mark.parametrize(("refusal", "attributes", "field", "message"), CASES)
def test_a_refusal_names_what_it_refuses_and_carries_it(
    refusal: RefusalError, attributes: dict[str, object], field: str, message: str
) -> None:
    assert str(refusal) == message
    assert vars(refusal) == attributes


@pytest.mark.parametrize(("refusal", "attributes", "field", "message"), CASES)
def test_a_refusal_is_a_sentence_that_can_stand_after_a_colon(
    refusal: RefusalError, attributes: dict[str, object], field: str, message: str
) -> None:
    assert message[0].islower() or message.startswith(("VM ", "'"))
    assert not message.endswith(".")
    assert "  " not in message


@pytest.mark.parametrize(("refusal", "attributes", "field", "message"), CASES)
def test_a_refusal_says_which_part_of_the_request_is_at_fault(
    refusal: RefusalError, attributes: dict[str, object], field: str, message: str
) -> None:
    assert refusal.field == field


@pytest.mark.parametrize(
    ("refusal", "category"),
    [
        (errors.NoticeTooShortError, Category.INVALID),
        (errors.NotOwnResourceError, Category.FORBIDDEN),
        (errors.UnknownEventError, Category.NOT_FOUND),
        (errors.AlreadyStartedError, Category.CONFLICT),
    ],
)
def test_a_refusal_says_what_sort_of_refusal_it_is(
    refusal: type[RefusalError], category: Category
) -> None:
    """Edges go by that."""
    assert refusal.category is category


def test_no_refusal_is_left_out_of_these_tests() -> None:
    declared = {
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, RefusalError) and each is not RefusalError
    }

    assert {type(refusal) for refusal, *_ in REFUSALS} == declared


def test_a_foreign_id_and_one_that_never_was_are_refused_in_the_same_words() -> None:
    """I12: the words tell nobody what other scopes hold."""
    assert str(errors.UnknownEventError(A)) == f"event {A} was not found"


def test_the_conflict_without_update_domains_reads_as_well() -> None:
    refusal = errors.MaintenanceConflictError("web", ())

    assert str(refusal).startswith("scope 'web' is under maintenance, and only one")
    assert refusal.domains == frozenset()


@pytest.mark.parametrize(("length", "is_cut"), [(100, False), (101, True)])
def test_a_client_that_sends_a_book_for_an_id_gets_a_line_back(length: int, is_cut: bool) -> None:
    text = "x" * length

    refusal = errors.InvalidIdError(text)

    shown = f"{'x' * 100}…" if is_cut else text
    assert str(refusal).startswith(f"'{shown}' is not an event id")
    assert refusal.text == text


def test_a_refusal_names_the_part_of_the_request_as_its_caller_does() -> None:
    refusal = errors.InvalidIdError("seven")

    assert refusal.at("eventId") is refusal
    assert (refusal.field, errors.InvalidIdError("seven").field) == ("eventId", "event_id")
