"""I22: an action is repeated only where nothing can have happened, or the operator allows it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarned.actuators.decision import (
    Abort,
    Act,
    Done,
    Doubt,
    Failed,
    OnDoubt,
    Procedure,
    Rest,
    Situation,
    Step,
    Trouble,
    Wait,
    decide,
    pause_after,
)
from forewarned.actuators.driver import Action, Effect, Power, Sighting
from forewarned.core.model import EventType

KEY = "602D9444-D2CD-49C7-8624-8643E7171297/web-0"
RUNNING = Sighting(host="hv-a", power=Power.RUNNING, witness="boot 1", conclusive=True)
MOVED = replace(RUNNING, host="hv-b")
RESTARTED = replace(RUNNING, witness="boot 2")
PAUSED = replace(RUNNING, power=Power.PAUSED)
OFF = replace(RUNNING, power=Power.OFF, witness="")
GONE = Sighting(power=Power.GONE)
UNKNOWN = Sighting()
TYPES = {
    Effect.MOVES: EventType.REDEPLOY,
    Effect.RESTARTS: EventType.REBOOT,
    Effect.HOLDS: EventType.FREEZE,
    Effect.STOPS: EventType.PREEMPT,
    Effect.REMOVES: EventType.TERMINATE,
}
EVERY = pytest.mark.parametrize("effect", Effect)


def a_procedure(effect: Effect, *, on_doubt: OnDoubt = OnDoubt.STOP, retries: int = 0) -> Procedure:
    action = Action(type=TYPES[effect], do="it", effect=effect)
    return Procedure(
        action=action, timeout=timedelta(minutes=10), retries=retries, on_doubt=on_doubt
    )


def a_case(
    effect: Effect,
    sighting: Sighting = RUNNING,
    *,
    before: Sighting = RUNNING,
    begun: bool = True,
    on_doubt: OnDoubt = OnDoubt.STOP,
    retries: int = 0,
) -> Situation:
    return Situation(
        key=KEY,
        procedure=a_procedure(effect, on_doubt=on_doubt, retries=retries),
        before=before,
        begun=begun,
        sighting=sighting,
    )


def issued(sighting: Sighting) -> Sighting:
    return replace(sighting, intent=KEY, issued=True)


def marked(sighting: Sighting) -> Sighting:
    return replace(sighting, intent=KEY)


@EVERY
def test_what_no_attempt_has_begun_is_carried_out(effect: Effect) -> None:
    assert decide(a_case(effect, begun=False)) == Act()
    assert decide(a_case(effect, marked(RUNNING), begun=False)) == Act()


@pytest.mark.parametrize(
    ("effect", "sighting"),
    [
        (Effect.MOVES, MOVED),
        (Effect.MOVES, issued(MOVED)),
        (Effect.RESTARTS, RESTARTED),
        (Effect.RESTARTS, issued(RUNNING)),
        (Effect.HOLDS, issued(RUNNING)),
        (Effect.STOPS, OFF),
        (Effect.STOPS, GONE),
        (Effect.REMOVES, GONE),
        (Effect.MOVES, issued(replace(RUNNING, host=None))),
        *((effect, issued(UNKNOWN)) for effect in Effect),
    ],
)
def test_what_the_platform_proves_is_done_whoever_did_it(
    effect: Effect, sighting: Sighting
) -> None:
    assert decide(a_case(effect, sighting)) == Done()


@pytest.mark.parametrize(
    ("effect", "sighting"),
    [
        (Effect.RESTARTS, issued(OFF)),
        (Effect.HOLDS, issued(PAUSED)),
        (Effect.MOVES, issued(RUNNING)),
        (Effect.STOPS, issued(RUNNING)),
        (Effect.REMOVES, issued(OFF)),
    ],
)
def test_what_was_issued_is_waited_for_and_not_issued_again(
    effect: Effect, sighting: Sighting
) -> None:
    assert isinstance(decide(a_case(effect, sighting, on_doubt=OnDoubt.REPEAT)), Wait)


@pytest.mark.parametrize(
    ("effect", "sighting", "words"),
    [
        (Effect.RESTARTS, issued(OFF), "the VM is off"),
        (Effect.HOLDS, issued(PAUSED), "the VM is paused"),
        (Effect.STOPS, issued(RUNNING), "the VM is running"),
    ],
)
def test_people_can_read_what_is_waited_for(effect: Effect, sighting: Sighting, words: str) -> None:
    assert decide(a_case(effect, sighting)) == Wait(words)


@EVERY
def test_a_mark_of_another_task_says_nothing_about_this_one(effect: Effect) -> None:
    """I22: neither that it was issued, nor that it was not."""
    for other in (replace(UNKNOWN, issued=True), replace(UNKNOWN, untouched=True)):
        case = a_case(effect, replace(other, intent="another task"))

        assert isinstance(decide(case), Doubt)


@pytest.mark.parametrize(
    ("effect", "done"),
    [
        (Effect.MOVES, "moved"),
        (Effect.RESTARTS, "restarted"),
        (Effect.HOLDS, "paused"),
        (Effect.STOPS, "stopped"),
        (Effect.REMOVES, "removed"),
    ],
)
def test_a_doubt_says_what_an_operator_has_to_find_out(effect: Effect, done: str) -> None:
    assert decide(a_case(effect, UNKNOWN)) == Doubt(
        "an earlier attempt ended before it could report, and nothing shows whether the VM was"
        f" {done}"
    )


@pytest.mark.parametrize(
    ("power", "before", "is_done"),
    [
        (Power.RUNNING, Power.RUNNING, True),
        (Power.RUNNING, Power.OFF, True),
        (Power.OFF, Power.OFF, True),
        (Power.OFF, Power.RUNNING, False),
        (Power.PAUSED, Power.RUNNING, False),
    ],
)
def test_a_move_is_done_where_the_vm_runs_elsewhere_or_is_there_as_it_was_before(
    power: Power, before: Power, is_done: bool
) -> None:
    case = a_case(Effect.MOVES, replace(MOVED, power=power), before=replace(RUNNING, power=before))

    assert (decide(case) == Done()) is is_done


@pytest.mark.parametrize("missing", ["before", "now"])
def test_a_move_that_hosts_do_not_show_is_done_when_it_was_issued_and_the_vm_runs(
    missing: str,
) -> None:
    before, seen = (replace(RUNNING, host=None), MOVED)
    if missing == "now":
        before, seen = RUNNING, replace(RUNNING, host=None)

    assert decide(a_case(Effect.MOVES, issued(seen), before=before)) == Done()
    assert decide(
        a_case(Effect.MOVES, issued(replace(seen, power=Power.PAUSED)), before=before)
    ) == (Wait("the VM is paused"))
    assert isinstance(decide(a_case(Effect.MOVES, seen, before=before)), Doubt)


def test_a_host_in_other_letters_is_the_same_host() -> None:
    shouted = replace(marked(RUNNING), host="HV-A")

    assert decide(a_case(Effect.MOVES, shouted)) == Act()


def test_a_restart_is_done_when_the_vm_runs_again() -> None:
    paused = replace(RESTARTED, power=Power.PAUSED)

    assert decide(a_case(Effect.RESTARTS, issued(paused))) == Wait("the VM is paused")
    assert isinstance(decide(a_case(Effect.RESTARTS, paused)), Doubt)


def test_a_witness_that_is_not_seen_twice_proves_no_restart() -> None:
    unseen = replace(RUNNING, witness="")

    assert isinstance(decide(a_case(Effect.RESTARTS, RESTARTED, before=unseen)), Doubt)
    assert isinstance(decide(a_case(Effect.RESTARTS, unseen)), Doubt)
    assert isinstance(decide(a_case(Effect.RESTARTS, unseen, before=unseen)), Doubt)


def test_a_vm_whose_host_is_never_seen_may_have_been_moved() -> None:
    """I22."""
    nowhere = replace(RUNNING, host=None)

    assert isinstance(decide(a_case(Effect.MOVES, marked(nowhere), before=nowhere)), Doubt)


def test_the_words_of_settings_for_cases_of_doubt_never_change() -> None:
    assert [word.value for word in OnDoubt] == ["repeat", "stop"]


def test_nothing_is_tried_again_unless_the_operator_says_so() -> None:
    procedure = a_procedure(Effect.MOVES)

    default = Procedure(
        action=procedure.action, timeout=procedure.timeout, on_doubt=procedure.on_doubt
    )

    assert default == replace(procedure, retries=0)


def test_a_restart_had_no_effect_only_if_the_power_is_as_it_was() -> None:
    """I22: the same boot, but paused, is no VM that was left alone."""
    assert isinstance(decide(a_case(Effect.RESTARTS, marked(PAUSED))), Doubt)


def test_a_vm_that_others_have_paused_is_not_made_to_run() -> None:
    assert isinstance(decide(a_case(Effect.HOLDS, PAUSED)), Doubt)


@EVERY
def test_what_the_driver_told_this_attempt_counts_like_a_mark(effect: Effect) -> None:
    case = replace(a_case(effect, UNKNOWN), returned=True)

    assert decide(case) == Done()


@pytest.mark.parametrize(
    ("effect", "sighting"),
    [
        (Effect.MOVES, marked(RUNNING)),
        (Effect.RESTARTS, marked(RUNNING)),
        (Effect.HOLDS, marked(PAUSED)),
        (Effect.STOPS, marked(RUNNING)),
        (Effect.REMOVES, marked(OFF)),
        *((effect, replace(marked(UNKNOWN), untouched=True)) for effect in Effect),
    ],
)
def test_what_is_seen_to_have_had_no_effect_is_carried_out_by_the_next_attempt(
    effect: Effect, sighting: Sighting
) -> None:
    assert decide(a_case(effect, sighting)) == Act()


@pytest.mark.parametrize(
    ("effect", "sighting"),
    [
        (Effect.RESTARTS, replace(RUNNING, conclusive=False)),
        (Effect.RESTARTS, replace(RUNNING, witness="")),
        (Effect.RESTARTS, OFF),
        (Effect.HOLDS, RUNNING),
        (Effect.MOVES, replace(RUNNING, host=None)),
        (Effect.MOVES, OFF),
        *((effect, UNKNOWN) for effect in Effect),
    ],
)
def test_doubt_is_for_the_operator_to_settle(effect: Effect, sighting: Sighting) -> None:
    before = replace(RUNNING, conclusive=sighting.conclusive, witness=sighting.witness)

    stopped = decide(a_case(effect, sighting, before=before, on_doubt=OnDoubt.STOP))
    repeated = decide(a_case(effect, sighting, before=before, on_doubt=OnDoubt.REPEAT))

    assert isinstance(stopped, Doubt)
    assert repeated == Act()


@pytest.mark.parametrize("seen", [marked(OFF), marked(replace(RUNNING, conclusive=False))])
def test_a_vm_that_is_switched_off_and_on_leaves_no_doubt(seen: Sighting) -> None:
    """I22: an attempt that died before it was off left the witness; before it was on, a VM off."""
    case = a_case(Effect.RESTARTS, seen)
    action = replace(case.procedure.action, by_switch=True)

    by_switch = replace(case, procedure=replace(case.procedure, action=action))

    assert decide(by_switch) == Act()
    assert isinstance(decide(case), Doubt)
    assert decide(replace(by_switch, sighting=marked(RESTARTED))) == Done()


def test_a_vm_that_others_have_switched_off_is_not_switched_on() -> None:
    case = a_case(Effect.RESTARTS, OFF)
    action = replace(case.procedure.action, by_switch=True)

    assert isinstance(
        decide(replace(case, procedure=replace(case.procedure, action=action))), Doubt
    )


@pytest.mark.parametrize("effect", [Effect.MOVES, Effect.RESTARTS, Effect.HOLDS])
def test_a_vm_that_is_gone_is_a_failure_where_it_should_not_be(effect: Effect) -> None:
    for begun in (False, True):
        step = decide(a_case(effect, GONE, begun=begun))

        assert step == Failed("the platform has no such VM", unharmed=False)


@pytest.mark.parametrize(("effect", "sighting"), [(Effect.STOPS, OFF), (Effect.REMOVES, GONE)])
def test_what_is_so_already_needs_no_action(effect: Effect, sighting: Sighting) -> None:
    assert decide(a_case(effect, sighting, before=sighting, begun=False)) == Done()


def test_an_alternative_proves_it_too() -> None:
    action = Action(
        type=EventType.FREEZE,
        do="live-migrate",
        effect=Effect.MOVES,
        otherwise="hold",
        otherwise_effect=Effect.HOLDS,
    )
    procedure = replace(a_procedure(Effect.MOVES), action=action)
    case = replace(a_case(Effect.MOVES), procedure=procedure)

    moved = decide(replace(case, sighting=MOVED))
    held = decide(replace(case, sighting=issued(RUNNING)))
    unknown = decide(case)

    assert moved == held == Done()
    assert isinstance(unknown, Doubt)


@EVERY
def test_a_job_in_flight_is_waited_for(effect: Effect) -> None:
    for sighting in (RUNNING, MOVED, PAUSED, UNKNOWN):
        case = a_case(effect, replace(sighting, job="migrating"), on_doubt=OnDoubt.REPEAT)

        assert decide(case) == Wait("migrating")
        assert decide(replace(case, begun=False)) == Wait("migrating")


# --- failures ------------------------------------------------------------------------------------


def failed(case: Situation, *, tries: int = 1, **how: bool) -> Step:
    return decide(replace(case, trouble=Trouble(error="no route", tries=tries, **how)))


def test_a_failure_without_effect_is_tried_again_as_often_as_allowed() -> None:
    case = a_case(Effect.MOVES, retries=2)

    assert failed(case, tries=1) == Rest(pause_after(1))
    assert failed(case, tries=2) == Rest(pause_after(2))
    assert failed(case, tries=2, rested=True) == Act()
    assert failed(case, tries=3) == Failed("no route", unharmed=True)


@pytest.mark.parametrize("sighting", [OFF, PAUSED, UNKNOWN])
def test_a_vm_that_is_not_as_before_is_not_acted_on_again(sighting: Sighting) -> None:
    case = a_case(Effect.MOVES, sighting, on_doubt=OnDoubt.REPEAT, retries=5)

    assert failed(case) == Failed("no route", unharmed=False)


def test_a_restart_that_failed_without_proof_is_tried_again_only_if_allowed() -> None:
    vague = replace(RUNNING, conclusive=False)

    stopped = failed(a_case(Effect.RESTARTS, vague, retries=5))
    repeated = failed(a_case(Effect.RESTARTS, vague, retries=5, on_doubt=OnDoubt.REPEAT))
    refused = failed(a_case(Effect.RESTARTS, vague, retries=5), nothing_done=True)

    assert stopped == Failed("no route", unharmed=True)
    assert repeated == refused == Rest(pause_after(1))


def test_success_counts_even_if_the_driver_reported_an_error() -> None:
    assert failed(a_case(Effect.MOVES, MOVED)) == Done()


def test_what_the_platform_puts_off_is_tried_until_the_limit() -> None:
    case = a_case(Effect.RESTARTS, UNKNOWN, before=UNKNOWN)

    assert failed(case, tries=50, nothing_done=True, later=True) == Rest(pause_after(50))
    late = replace(case, elapsed=timedelta(minutes=10))
    assert failed(late, tries=50, nothing_done=True, later=True) == Abort()


def test_a_refusal_leaves_a_vm_unharmed_even_where_no_vm_can_be_seen() -> None:
    case = a_case(Effect.RESTARTS, UNKNOWN, before=UNKNOWN)

    assert failed(case, nothing_done=True) == Failed("no route", unharmed=True)


@pytest.mark.parametrize(
    ("sighting", "unharmed"),
    [
        (RUNNING, True),
        (replace(RUNNING, host="HV-A"), True),
        (replace(RUNNING, host=None), True),
        (RESTARTED, False),
        (PAUSED, False),
        (replace(MOVED, power=Power.PAUSED), False),
    ],
)
def test_a_vm_is_unharmed_if_nothing_that_is_seen_of_it_has_changed(
    sighting: Sighting, unharmed: bool
) -> None:
    assert failed(a_case(Effect.HOLDS, sighting)) == Failed("no route", unharmed=unharmed)


def test_a_vm_whose_host_was_not_seen_before_is_not_taken_for_one_that_has_moved() -> None:
    nowhere = replace(RUNNING, host=None)

    assert failed(a_case(Effect.HOLDS, RUNNING, before=nowhere)) == Failed(
        "no route", unharmed=True
    )


def test_a_vm_that_nobody_sees_is_not_known_to_be_unharmed() -> None:
    case = a_case(Effect.RESTARTS, UNKNOWN, before=UNKNOWN)

    assert failed(case) == Failed("no route", unharmed=False)


def test_a_vm_that_was_moved_is_harmed_where_it_should_have_been_stopped() -> None:
    assert failed(a_case(Effect.STOPS, MOVED)) == Failed("no route", unharmed=False)


# --- limits --------------------------------------------------------------------------------------


def test_what_takes_too_long_is_ended_and_then_judged() -> None:
    late = replace(a_case(Effect.MOVES, marked(RUNNING)), elapsed=timedelta(minutes=10))
    busy = replace(late, sighting=replace(late.sighting, job="migrating"))

    assert decide(late) == decide(busy) == Abort()
    for sighting, unharmed in ((RUNNING, True), (OFF, False), (UNKNOWN, False)):
        step = decide(replace(late, sighting=sighting, aborted=True))
        assert step == Failed("it was not carried out within 10m", unharmed=unharmed)
    assert decide(replace(late, sighting=MOVED, aborted=True)) == Done()
    for sighting in (busy.sighting, replace(MOVED, job="migrating")):
        stuck = decide(replace(busy, sighting=sighting, aborted=True))
        assert stuck == Failed("it was not carried out within 10m", unharmed=False)


def test_pauses_grow_up_to_a_minute() -> None:
    pauses = [pause_after(tries).total_seconds() for tries in (0, 1, 2, 3, 4, 5, 6, 7, 8, 2000)]

    assert pauses == [1, 1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_limit_is_for_the_attempt_and_to_the_moment() -> None:
    case = a_case(Effect.MOVES, replace(marked(RUNNING), job="migrating"))
    moment = timedelta(microseconds=1)

    assert decide(replace(case, elapsed=timedelta(minutes=10) - moment)) == Wait("migrating")
    assert decide(replace(case, elapsed=timedelta(minutes=10))) == Abort()


def test_what_was_in_the_way_is_told_with_the_limit() -> None:
    trouble = Trouble(error="no route", tries=3)
    case = replace(a_case(Effect.MOVES, marked(RUNNING)), aborted=True, trouble=trouble)

    assert decide(case) == Failed("it was not carried out within 10m: no route", unharmed=True)


@EVERY
def test_what_was_issued_is_not_done_where_the_platform_has_stopped_answering(
    effect: Effect,
) -> None:
    """A VM of which nothing is known must be looked at by a person."""
    case = replace(a_case(effect, UNKNOWN), returned=True)

    assert isinstance(decide(case), Done)
    assert decide(replace(case, unanswered=True)) == Failed(
        "the platform has not answered, so the state of the VM is unknown", unharmed=False
    )
