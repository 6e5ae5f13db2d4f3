"""What happened, in the words of records."""

from datetime import timedelta

import pytest

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import StartCause
from forewarned.core.transitions import (
    ACTIONS,
    Activated,
    Approved,
    Canceled,
    CarriedOut,
    Completed,
    Deactivated,
    Interrupted,
    MaintenancePlanned,
    Narrowed,
    PolicyChanged,
    ResourceAdded,
    ResourceChanged,
    ResourceRemoved,
    Restored,
    Retried,
    Scheduled,
    Skipped,
    Stalled,
    Started,
    Transition,
    action,
    action_in_words,
    cause,
    cause_in_words,
    resources,
)
from tests.builders import NOON, A, an_event

SCOPE = ScopeId("scope1")
VM2, VM3 = ResourceName("vm2"), ResourceName("vm3")
EVENT = an_event(A, resources=["vm1", "vm2"])
BOTH = EVENT.resources


@pytest.mark.parametrize(
    ("fact", "called", "because", "whom"),
    [
        (Scheduled(scope_id=SCOPE, at=NOON, event=EVENT), "scheduled", "", BOTH),
        (Approved(scope_id=SCOPE, at=NOON, event=EVENT), "approved", "", BOTH),
        (
            Started(scope_id=SCOPE, at=NOON, event=EVENT, cause=StartCause.NOT_BEFORE),
            "started",
            "not_before",
            BOTH,
        ),
        (Interrupted(scope_id=SCOPE, at=NOON, event=EVENT, vms=(VM2,)), "interrupted", "", (VM2,)),
        (CarriedOut(scope_id=SCOPE, at=NOON, event=EVENT, vms=(VM2,)), "carried_out", "", (VM2,)),
        (Restored(scope_id=SCOPE, at=NOON, event=EVENT, vms=(VM2,)), "restored", "", (VM2,)),
        (
            Restored(
                scope_id=SCOPE,
                at=NOON,
                event=EVENT,
                vms=(VM2,),
                away=timedelta(seconds=18.54),
                reason="as it was",
            ),
            "restored",
            "interrupted for 18.5 s; as it was",
            (VM2,),
        ),
        (
            Stalled(scope_id=SCOPE, at=NOON, event=EVENT, vms=(VM2,), reason="it is down"),
            "stalled",
            "it is down",
            (VM2,),
        ),
        (Retried(scope_id=SCOPE, at=NOON, event=EVENT, vms=(VM2,)), "retried", "", (VM2,)),
        (Skipped(scope_id=SCOPE, at=NOON, event=EVENT, vms=(VM2,)), "skipped", "", (VM2,)),
        (
            Narrowed(scope_id=SCOPE, at=NOON, event=EVENT, resource=VM3),
            "narrowed",
            "VM vm3 is gone",
            BOTH,
        ),
        (Completed(scope_id=SCOPE, at=NOON, event=EVENT), "completed", "", BOTH),
        (
            Canceled(scope_id=SCOPE, at=NOON, event=EVENT, reason="not today"),
            "canceled",
            "not today",
            BOTH,
        ),
        (Activated(scope_id=SCOPE, at=NOON), "activated", "", ()),
        (Deactivated(scope_id=SCOPE, at=NOON), "deactivated", "", ()),
        (PolicyChanged(scope_id=SCOPE, at=NOON), "policy_changed", "", ()),
        (
            MaintenancePlanned(scope_id=SCOPE, at=NOON, update_domains=(0,), event_ids=(A,)),
            "maintenance_planned",
            "",
            (),
        ),
        (ResourceAdded(scope_id=SCOPE, at=NOON, resource=VM3), "resource_added", "", (VM3,)),
        (ResourceChanged(scope_id=SCOPE, at=NOON, resource=VM3), "resource_changed", "", (VM3,)),
        (ResourceRemoved(scope_id=SCOPE, at=NOON, resource=VM3), "resource_removed", "", (VM3,)),
    ],
)
def test_a_transition_says_what_happened_to_whom_and_why(
    fact: Transition, called: str, because: str, whom: tuple[ResourceName, ...]
) -> None:
    """I29."""
    assert action(fact) == called
    assert cause(fact) == because
    assert resources(fact) == whom
    assert action(fact) in ACTIONS


def test_actions_are_words_for_what_happens_and_not_for_kinds_of_it() -> None:
    """Pages offer them to choose from, and no record has a word such as `event_transition`."""
    assert sorted(ACTIONS) == [
        "activated",
        "approved",
        "canceled",
        "carried_out",
        "completed",
        "deactivated",
        "interrupted",
        "maintenance_planned",
        "narrowed",
        "policy_changed",
        "power_changed",
        "resource_added",
        "resource_changed",
        "resource_removed",
        "restored",
        "retried",
        "scheduled",
        "skipped",
        "stalled",
        "started",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "interrupted for 0.0 s"),
        (0.004, "interrupted for 0.00 s"),
        (0.25, "interrupted for 0.25 s"),
        (1.0, "interrupted for 1.0 s"),
        (61.26, "interrupted for 61.3 s"),
    ],
)
def test_how_long_a_vm_was_away_is_told_more_finely_below_a_second(
    seconds: float, words: str
) -> None:
    away = timedelta(seconds=seconds)

    fact = Restored(scope_id=SCOPE, at=NOON, event=EVENT, vms=(VM2,), away=away)

    assert cause(fact) == words


def test_an_action_that_could_mislead_has_words_of_its_own() -> None:
    words = {each: action_in_words(each) for each in ACTIONS}

    assert {each: said for each, said in words.items() if said != each.replace("_", " ")} == {
        "interrupted": "impact began",
        "narrowed": "has fewer VMs",
        "restored": "impact over",
    }
    assert action_in_words("turned_away") == "turned away"


def test_every_cause_of_a_start_has_words_and_no_other_cause_is_touched() -> None:
    assert [cause_in_words("started", each) for each in StartCause] == [
        "approved",
        "at its NotBefore",
        "approved by the scope's policy",
        "because its host failed",
        "without notice",
    ]
    assert cause_in_words("canceled", "policy") == "policy"
    assert cause_in_words("started", "of old") == "of old"
