"""What the agent does next, for everything that can have happened."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.agent.journal import Gone, Seen
from forewarned.agent.model import (
    Approve,
    HookOutcome,
    Leader,
    Phase,
    Plan,
    Progress,
    Turn,
    Verdict,
)
from forewarned.agent.plan import (
    MARGIN,
    ApproveNow,
    Wait,
    is_prepared,
    left_out,
    next_action,
    not_put_back,
    why_not_approved,
)
from tests.agent.journeys import EVENT, ME, Journey, a_plan, a_sighting, a_step
from tests.builders import MINUTE, NOON, SECOND

PREPARE, UNDO, RECOVER = Phase.PREPARE, Phase.UNDO, Phase.RECOVER
GONE = Gone(event_id=EVENT, at=NOON)
STARTED = Seen(event_id=EVENT, at=NOON, sighting=a_sighting(is_started=True, not_before=None))


def test_it_prepares_approves_and_after_the_event_puts_back_and_recovers() -> None:
    """I30."""
    plan = a_plan(
        a_step("drain", has_undo=True), a_step("stop", has_undo=True), recover=(a_step("check"),)
    )
    journey = Journey(plan)

    assert journey.go() == Wait(why="the event to start: it is approved")
    assert journey.ran == [(PREPARE, "drain"), (PREPARE, "stop")]
    journey.tell(STARTED)
    assert journey.go() == Wait(why="the event to be over")
    journey.tell(GONE)
    assert journey.go() is None

    assert journey.ran[2:] == [(UNDO, "stop"), (UNDO, "drain"), (RECOVER, "check")]
    assert journey.approvals == 1
    assert journey.progress.is_finished


def test_an_event_that_no_rule_is_for_is_said_to_be_so() -> None:
    journey = Journey(Plan(rule="", approve=Approve.NEVER))

    assert journey.go() == Wait(why="NotBefore: no rule matches this event")


@pytest.mark.parametrize(
    ("approve", "required", "verdict", "approves"),
    [
        (Approve.WHEN_READY, True, Verdict.DONE, True),
        (Approve.WHEN_READY, True, Verdict.FAILED, False),
        (Approve.WHEN_READY, True, Verdict.TIMED_OUT, False),
        (Approve.WHEN_READY, False, Verdict.FAILED, True),
        (Approve.WHEN_READY, False, Verdict.VETOED, False),
        (Approve.ALWAYS, True, Verdict.FAILED, True),
        (Approve.ALWAYS, True, Verdict.VETOED, False),
        (Approve.NEVER, True, Verdict.DONE, False),
    ],
)
def test_it_approves_when_its_policy_says_so(
    approve: Approve, required: bool, verdict: Verdict, approves: bool
) -> None:
    """I30: never after a failed hook, unless the policy says so."""
    plan = a_plan(a_step(required=required), approve=approve)
    journey = Journey(plan, verdict=lambda _: verdict)

    journey.go()

    assert journey.approvals == approves


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (None, "step 'drain' has not run"),
        (HookOutcome(verdict=Verdict.VETOED, detail="busy"), "step 'drain' vetoes: busy"),
        (HookOutcome(verdict=Verdict.VETOED), "step 'drain' vetoes"),
        (HookOutcome(verdict=Verdict.FAILED), "step 'drain' is required and failed"),
        (HookOutcome(verdict=Verdict.TIMED_OUT), "step 'drain' is required and timed out"),
        (HookOutcome(verdict=Verdict.SKIPPED), "step 'drain' is required and was skipped"),
        (HookOutcome(verdict=Verdict.INTERRUPTED), "step 'drain' is required and was interrupted"),
        (HookOutcome(verdict=Verdict.DONE), None),
    ],
)
def test_people_can_read_why_an_event_is_not_approved(
    outcome: HookOutcome | None, reason: str | None
) -> None:
    outcomes = {} if outcome is None else {Turn(PREPARE, "drain"): outcome}
    progress = Progress(sighting=a_sighting(), plan=a_plan(a_step()), outcomes=outcomes)

    assert why_not_approved(progress) == reason


def test_a_rule_that_never_approves_is_named() -> None:
    journey = Journey(a_plan(approve=Approve.NEVER))

    assert journey.go() == Wait(why="NotBefore: rule 'any' never approves")


@pytest.mark.parametrize("verdict", Verdict)
def test_a_step_whose_undo_has_failed_is_not_put_back(verdict: Verdict) -> None:
    """I30: it won't run again, so people have to see to it."""
    undone = {
        Turn(UNDO, "drain"): HookOutcome(verdict=verdict),
        Turn(PREPARE, "stop"): HookOutcome(verdict=Verdict.FAILED),
    }
    plan = a_plan(a_step("drain", has_undo=True), a_step("stop", has_undo=True))
    progress = Progress(sighting=a_sighting(), plan=plan, outcomes=undone)

    has_failed = verdict in {Verdict.FAILED, Verdict.TIMED_OUT, Verdict.INTERRUPTED}
    assert not_put_back(progress) == (("drain",) if has_failed else ())


def test_an_undo_knows_what_its_prepare_wrote_down_before_and_after_it_ended() -> None:
    turn = Turn(PREPARE, "drain")
    others = {Turn(PREPARE, "stop"): {"weight": "1"}, Turn(UNDO, "drain"): {"weight": "2"}}
    begun = Progress(
        sighting=a_sighting(), plan=a_plan(), kept={**others, turn: {"weight": "7", "pool": "web"}}
    )
    ended = HookOutcome(verdict=Verdict.DONE, notes={"weight": "8"})

    assert Progress(sighting=a_sighting(), plan=a_plan(), kept=others).notes("drain") == {}
    assert begun.notes("drain") == {"weight": "7", "pool": "web"}
    assert replace(begun, outcomes={turn: ended}).notes("drain") == {"weight": "8", "pool": "web"}


def test_what_failed_may_have_done_half_its_work_and_is_undone() -> None:
    journey = Journey(a_plan(a_step(has_undo=True)), verdict=lambda _: Verdict.FAILED)
    journey.go()
    journey.tell(GONE)

    journey.go()

    assert Turn(UNDO, "drain") in journey.ran


def test_a_canceled_event_is_undone_as_far_as_it_was_prepared() -> None:
    journey = Journey(a_plan(a_step("one", has_undo=True), a_step("two", has_undo=True)))
    journey.go(dies_after=2)
    journey.tell(GONE)

    journey.go()

    assert journey.ran == [(PREPARE, "one"), (UNDO, "one")]
    assert journey.progress.is_finished


def test_once_the_event_has_started_nothing_more_is_prepared() -> None:
    journey = Journey(a_plan(a_step()), a_sighting(is_started=True, not_before=None))

    assert journey.go() == Wait(why="the event to be over")

    assert journey.ran == []
    assert journey.approvals == 0
    assert skipped(journey) == "the event has started"


def skipped(journey: Journey, turn: Turn = Turn(PREPARE, "drain")) -> str:  # noqa: B008 - frozen
    outcome = journey.progress.outcomes[turn]
    assert outcome.verdict is Verdict.SKIPPED
    return outcome.detail


def test_a_hook_that_was_cut_short_is_not_run_again_and_the_record_says_so() -> None:
    """I30."""
    journey = Journey(a_plan(a_step()))
    journey.go(dies_after=1)

    wait = journey.go()

    outcome = journey.progress.outcomes[Turn(PREPARE, "drain")]
    assert outcome == HookOutcome(
        verdict=Verdict.INTERRUPTED,
        detail="the agent stopped while this hook was running, and won't run it again",
    )
    assert wait == Wait(why="NotBefore: step 'drain' is required and was interrupted")


def test_what_is_left_out_after_the_event_is_recorded_with_the_reason() -> None:
    """I30."""
    journey = Journey(a_plan(a_step(has_undo=True)))
    journey.tell(GONE)

    assert journey.go() is None

    assert journey.ran == []
    assert skipped(journey) == "the event is gone"
    assert skipped(journey, Turn(UNDO, "drain")) == "there is nothing to undo"


def test_after_the_event_each_hook_has_its_own_timeout() -> None:
    plan = a_plan(
        a_step(timeout=20 * SECOND, has_undo=True), recover=(a_step("check", timeout=MINUTE),)
    )
    journey = Journey(plan)
    journey.go()
    journey.tell(GONE)

    journey.go()

    assert journey.limits[Turn(UNDO, "drain")] == 20 * SECOND
    assert journey.limits[Turn(RECOVER, "check")] == MINUTE


def test_a_veto_counts_whichever_step_it_comes_from() -> None:
    """I30: a policy that always approves goes on to look at the steps after one that failed."""
    plan = a_plan(a_step("drain"), a_step("stop"), approve=Approve.ALWAYS)
    verdicts = {"drain": Verdict.FAILED, "stop": Verdict.VETOED}
    journey = Journey(plan, verdict=lambda turn: verdicts[turn.step])

    assert journey.go() == Wait(why="NotBefore: step 'stop' vetoes")


@pytest.mark.parametrize(
    ("verdict", "required", "prepared"),
    [
        (None, False, False),
        (Verdict.DONE, True, True),
        (Verdict.FAILED, True, False),
        (Verdict.FAILED, False, True),
        (Verdict.VETOED, False, False),
    ],
)
@pytest.mark.parametrize("approve", Approve)
def test_a_vm_is_prepared_once_every_required_step_is_done_and_none_vetoes(
    approve: Approve, verdict: Verdict | None, required: bool, prepared: bool
) -> None:
    plan = a_plan(a_step("stop"), a_step(required=required), approve=approve)
    outcomes = {Turn(PREPARE, "stop"): HookOutcome(verdict=Verdict.DONE)}
    if verdict is not None:
        outcomes[Turn(PREPARE, "drain")] = HookOutcome(verdict=verdict)
    progress = Progress(sighting=a_sighting(), plan=plan, outcomes=outcomes)

    assert is_prepared(progress) is prepared


# --- time ----------------------------------------------------------------------------------------


def test_hooks_are_ended_before_not_before_comes() -> None:
    journey = Journey(a_plan(a_step(timeout=MINUTE)), a_sighting(not_before=NOON + 30 * SECOND))

    journey.go()

    # A second is kept for the approval itself.
    assert journey.limits[Turn(PREPARE, "drain")] == 29 * SECOND


def test_a_hook_has_its_own_timeout_where_no_not_before_is_known() -> None:
    journey = Journey(a_plan(a_step(timeout=MINUTE)), a_sighting(not_before=None))

    journey.go()

    assert journey.limits == {Turn(PREPARE, "drain"): MINUTE}
    assert journey.approvals == 1


def test_where_time_is_short_steps_go_in_the_declared_order() -> None:
    steps = (
        a_step("drain", timeout=10 * SECOND, cut=0),
        a_step("copy", timeout=MINUTE, cut=2, required=False),
        a_step("tell", timeout=10 * SECOND, cut=1, required=False),
    )
    journey = Journey(a_plan(*steps), a_sighting(not_before=NOON + 30 * SECOND))

    journey.go()

    assert journey.ran == [(PREPARE, "drain"), (PREPARE, "tell")]
    assert journey.approvals == 1
    assert skipped(journey, Turn(PREPARE, "copy")) == "there was no time for it"


def test_steps_that_just_fit_are_all_kept() -> None:
    steps = [a_step("one", timeout=10 * SECOND, cut=1), a_step("two", timeout=5 * SECOND, cut=1)]

    assert left_out(steps, 15 * SECOND + MARGIN) == []
    assert left_out(steps, 14 * SECOND + MARGIN) == [steps[1]]


def test_steps_are_left_out_by_how_long_they_usually_take() -> None:
    quick = a_step(timeout=MINUTE, expected=5 * SECOND, cut=1)

    assert left_out([quick], 30 * SECOND) == []


def test_no_hook_is_started_that_would_have_no_time_at_all() -> None:
    journey = Journey(a_plan(a_step()), a_sighting(not_before=NOON + MARGIN))

    journey.go()

    assert journey.ran == []
    assert skipped(journey) == "NotBefore had come"


def test_a_hook_is_started_if_there_is_any_time_for_it() -> None:
    journey = Journey(a_plan(a_step()), a_sighting(not_before=NOON + MARGIN + SECOND / 100))

    journey.go()

    assert journey.limits[Turn(PREPARE, "drain")] == SECOND / 100


def test_a_required_step_without_time_keeps_the_event_from_being_approved() -> None:
    journey = Journey(a_plan(a_step()), a_sighting(not_before=NOON))

    wait = journey.go(now=NOON)

    assert journey.ran == []
    assert wait == Wait(why="NotBefore: step 'drain' is required and was skipped")


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 3)), max_size=6), st.integers(0, 300))
def test_what_is_kept_fits_or_could_not_be_cut(shapes: list[tuple[int, int]], seconds: int) -> None:
    steps = [
        a_step(f"s{n}", timeout=timedelta(seconds=takes), cut=cut)
        for n, (takes, cut) in enumerate(shapes)
    ]
    left = timedelta(seconds=seconds)

    out = left_out(steps, left)

    kept = [step for step in steps if step not in out]
    assert sum((s.takes for s in kept), MARGIN) <= left or all(s.cut == 0 for s in kept)
    assert all(step.cut for step in out)
    assert not out or min(s.cut for s in out) >= max((s.cut for s in kept), default=0)


# --- several agents ------------------------------------------------------------------------------


def test_only_the_agent_of_the_first_vm_approves_where_it_leads() -> None:
    plan = a_plan(leader=Leader.FIRST_RESOURCE)

    leading = Journey(plan, a_sighting(resources=(ME.upper(), "web_1")))
    following = Journey(plan, a_sighting(resources=("web_1", ME)))

    leading.go()
    assert following.go() == Wait(
        why="the agent of web_1, the first of the event's VMs, to approve"
    )
    assert (leading.approvals, following.approvals) == (1, 0)


def test_the_last_agent_to_be_ready_approves() -> None:
    journey = Journey(a_plan(leader=Leader.ALL_READY), a_sighting(resources=(ME, "web_1")))

    assert journey.go() == Wait(why="the agents of web_1 to be ready")
    assert journey.progress.reported_ready
    journey.go(ready=["WEB_1"])

    assert journey.approvals == 1


def test_names_of_vms_mean_the_same_in_any_letter_case() -> None:
    sighting = a_sighting(resources=("Web_0", "WEB_1"))
    first = Progress(sighting=sighting, plan=a_plan(leader=Leader.FIRST_RESOURCE))
    last = Progress(sighting=sighting, plan=a_plan(leader=Leader.ALL_READY), reported_ready=True)

    assert next_action(first, me="WEB_0", now=NOON) == ApproveNow()
    assert next_action(last, me="WEB_0", now=NOON, ready=["web_1"]) == ApproveNow()


def test_all_agents_that_are_waited_for_are_named() -> None:
    journey = Journey(a_plan(leader=Leader.ALL_READY), a_sighting(resources=(ME, "web_1", "web_2")))

    assert journey.go() == Wait(why="the agents of web_1, web_2 to be ready")


# --- crashes -------------------------------------------------------------------------------------

names = st.lists(st.sampled_from("abcd"), unique=True, max_size=3)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    prepare = [
        a_step(name, required=draw(st.booleans()), has_undo=draw(st.booleans()))
        for name in draw(names)
    ]
    recover = tuple(a_step(name) for name in draw(names))
    return a_plan(*prepare, recover=recover, approve=draw(st.sampled_from(Approve)))


@given(
    plans(),
    st.lists(st.integers(0, 5), max_size=8),
    st.sampled_from(["early", "started", "late"]),
    st.sampled_from([Verdict.DONE, Verdict.FAILED, Verdict.TIMED_OUT, Verdict.VETOED]),
)
def test_whatever_dies_each_hook_runs_once_at_most_and_all_is_put_back(
    plan: Plan, deaths: list[int], end: str, verdict: Verdict
) -> None:
    """I30: for any crashes, at any point, before and after the event."""
    journey = Journey(plan, verdict=lambda _: verdict)
    lives = [*deaths, None]
    half = len(lives) // 2 if end != "early" else 0
    for life in lives[:half]:
        journey.go(dies_after=life)
    if end == "started":
        journey.tell(STARTED)
    journey.tell(GONE)
    for life in lives[half:]:
        journey.go(dies_after=life)
    journey.go()

    assert journey.progress.is_finished
    assert all(count == 1 for count in Counter(journey.ran).values())
    prepared = {turn.step for turn in journey.ran if turn.phase is PREPARE}
    undone = {turn.step for turn in journey.ran if turn.phase is UNDO}
    assert undone == {step.name for step in plan.prepare if step.has_undo} & prepared
    assert {t.step for t in journey.ran if t.phase is RECOVER} == {s.name for s in plan.recover}
    assert journey.approvals <= 1
