"""Each refusal says all there is to say, and carries its facts."""

import inspect

import pytest

from forewarned.core import errors
from forewarned.core.errors import RefusalError
from tests.builders import DAY, MINUTE, SECOND, A

REFUSALS = [
    (errors.InvalidIdError("seven"), {"text": "seven"}, "'seven'"),
    (errors.UnknownEventError(A), {"event_id": A}, A),
    (errors.DuplicateEventError(A), {"event_id": A}, A),
    (errors.UnknownResourceError("vm9"), {"name": "vm9"}, "'vm9'"),
    (errors.UnknownScopeError("web"), {"scope_id": "web"}, "'web'"),
    (errors.UnknownHostError("host9"), {"host": "host9"}, "'host9'"),
    (errors.NoResourcesError(), {}, "at least one VM"),
    (errors.DuplicateResourceError("vm1"), {"name": "vm1"}, "'vm1'"),
    (errors.SeveralUpdateDomainsError([2, 0]), {"domains": (0, 2)}, "0, 2"),
    (errors.NotSpotError("vm1"), {"name": "vm1"}, "'vm1'"),
    (errors.SpotTerminateError("vm1"), {"name": "vm1"}, "'vm1'"),
    (
        errors.NoticeTooShortError(MINUTE, 15 * MINUTE),
        {"notice": MINUTE, "minimum": 15 * MINUTE},
        "1m is below the minimum of 15m",
    ),
    (
        errors.NoticeTooLongError(16 * MINUTE, 15 * MINUTE),
        {"notice": 16 * MINUTE, "maximum": 15 * MINUTE},
        "16m is above the maximum of 15m",
    ),
    (errors.ShortNoticeForbiddenError(), {}, "enforces the minimum notice"),
    (
        errors.BadDurationError(-SECOND, 365 * DAY),
        {"duration": -SECOND, "longest": 365 * DAY},
        "not between zero and 365 days",
    ),
    (errors.DescriptionTooLongError(2, 1), {"length": 2, "longest": 1}, "2 characters"),
    (errors.TooManyUserEventsError(10), {"limit": 10}, "10 open user events"),
    (errors.NotOwnResourceError(A), {"event_id": A}, A),
    (errors.AlreadyStartedError(A), {"event_id": A}, A),
    (errors.NotStartedError(A), {"event_id": A}, A),
    (errors.ClosedEventError(A), {"event_id": A}, A),
    (errors.UnknownTaskError("A/vm1"), {"key": "A/vm1"}, "no task A/vm1"),
    (errors.TaskLostError("A/vm1", 2), {"key": "A/vm1", "attempt": 2}, "attempt 2 at task A/vm1"),
    (
        errors.TaskStateError("A/vm1", "Begun", "retried"),
        {"key": "A/vm1", "state": "Begun"},
        "is Begun, so it can't be retried",
    ),
    (
        errors.MaintenanceConflictError("web", {4, 0}),
        {"scope_id": "web", "domains": frozenset({0, 4})},
        "'web' is under maintenance (update domain 0, 4)",
    ),
    (errors.NotMaintainableError("Preempt"), {"type": "Preempt"}, "not a Preempt"),
]
CASES = [pytest.param(*case, id=type(case[0]).__name__) for case in REFUSALS]


@pytest.mark.parametrize(("refusal", "attributes", "words"), CASES)
def test_a_refusal_names_what_it_refuses_and_carries_it(
    refusal: RefusalError, attributes: dict[str, object], words: str
) -> None:
    assert words in str(refusal)
    assert vars(refusal) == attributes


@pytest.mark.parametrize(("refusal", "attributes", "words"), CASES)
def test_a_refusal_is_a_sentence_that_can_stand_after_a_colon(
    refusal: RefusalError, attributes: dict[str, object], words: str
) -> None:
    message = str(refusal)

    assert message[0].islower() or message.startswith(("VM ", "'"))
    assert not message.endswith(".")
    assert "  " not in message


@pytest.mark.parametrize(("refusal", "attributes", "words"), CASES)
def test_a_refusal_says_which_part_of_the_request_is_at_fault(
    refusal: RefusalError, attributes: dict[str, object], words: str
) -> None:
    assert refusal.field


def test_no_refusal_is_left_out_of_these_tests() -> None:
    declared = {
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, RefusalError) and each is not RefusalError
    }

    assert {type(refusal) for refusal, _, _ in REFUSALS} == declared


def test_a_foreign_id_and_one_that_never_was_are_refused_in_the_same_words() -> None:
    """I12: the words tell nobody what other scopes hold."""
    assert str(errors.UnknownEventError(A)) == f"no event {A} in this scope"


def test_the_conflict_without_update_domains_reads_as_well() -> None:
    refusal = errors.MaintenanceConflictError("web", ())

    assert str(refusal).startswith("scope 'web' is under maintenance, and only one")
    assert refusal.domains == frozenset()


def test_a_refusal_names_the_part_of_the_request_as_its_caller_does() -> None:
    refusal = errors.InvalidIdError("seven")

    assert refusal.at("eventId") is refusal
    assert (refusal.field, errors.InvalidIdError("seven").field) == ("eventId", "event_id")
