"""The loop, with a client and hooks that do as they are told."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.agent.event_loop import EventLoop, why_not_healthy
from forewarned.agent.event_worker import WorkerContext
from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.journal import Began, Ended, Gone, Journal, JournalError, Planned
from forewarned.agent.model import HookOutcome, Leader, Phase, Progress, Turn, Verdict
from forewarned.agent.readiness.ports import ReadinessError, ReadinessReport, Standing
from forewarned.agent.status.metrics import Counters
from forewarned.client import ChangeKind, RefusedError, UnavailableError
from forewarned.clock import monotonic
from tests.agent.journeys import EVENT, ME, a_plan, a_sighting, a_step
from tests.agent.machines import KEY, PLAN, Machine
from tests.agent.stubs import (
    StubClient,
    StubHook,
    StubReadiness,
    a_contact,
    a_document,
    an_event,
)
from tests.builders import MINUTE, NOON, SECOND

pytestmark = pytest.mark.anyio


async def until(holds: Callable[[], object]) -> None:
    """Let the loop go on until it holds."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  # what it waits for is many things
            await asyncio.sleep(0)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def is_approved(machine: Machine) -> bool:
    progress = machine.at()
    return progress is not None and progress.approved


def is_finished(machine: Machine) -> bool:
    progress = machine.at()
    return progress is not None and progress.is_finished


def warnings_of(machine: Machine) -> list[str]:
    assert machine.reporter is not None
    return list(machine.reporter.status().warnings)


async def test_an_event_is_prepared_for_approved_and_put_back_from(machine: Machine) -> None:
    """I30."""
    client = StubClient(a_document())
    async with machine.running(client):
        client.tell(ChangeKind.APPEARED, an_event())
        await until(lambda: is_approved(machine))
        client.tell(ChangeKind.STARTED, an_event(is_started=True))
        client.tell(ChangeKind.GONE, an_event(is_started=True))
        await until(lambda: is_finished(machine))

    assert client.approved == [EVENT]
    assert machine.hooks["drain"].phases == [Phase.PREPARE, Phase.UNDO]
    assert machine.hooks["check"].phases == [Phase.RECOVER]


async def test_a_hook_is_told_how_much_time_there_is_and_later_that_there_is_none(
    machine: Machine,
) -> None:
    client = StubClient(a_document(an_event()))
    async with machine.running(client):
        await until(lambda: is_approved(machine))
        client.tell(ChangeKind.GONE, an_event())
        await until(lambda: is_finished(machine))

    before, after = machine.hooks["drain"].calls
    assert (before.time_left, before.limit, before.me) == (15 * MINUTE, MINUTE, ME)
    assert after.time_left is None
    assert after.sighting.event_id == EVENT


async def test_the_undo_gets_what_its_prepare_kept_also_if_that_failed(machine: Machine) -> None:
    async def keeps(call: Call) -> None:
        if call.phase is Phase.PREPARE:
            call.save_notes({"state": "ready"})
            raise RuntimeError("a mistake")

    machine.hooks["drain"] = hook = StubHook(does=keeps)
    client = StubClient(a_document(an_event()))
    async with machine.running(client):
        await until(lambda: len(hook.calls) == 1 and machine.at())
        client.tell(ChangeKind.GONE, an_event())
        await until(lambda: is_finished(machine))

    assert hook.calls[1].notes == {"state": "ready"}
    progress = machine.at()
    assert progress is not None
    outcome = progress.outcomes[Turn(Phase.PREPARE, "drain")]
    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == "RuntimeError: a mistake"
    assert client.approved == []


async def test_a_hook_that_the_file_has_lost_has_failed(machine: Machine) -> None:
    del machine.hooks["drain"]
    client = StubClient(a_document(an_event()))
    async with machine.running(client):
        await until(lambda: (p := machine.at()) and p.outcomes)

    progress = machine.at()
    assert progress is not None
    outcome = progress.outcomes[Turn(Phase.PREPARE, "drain")]
    assert (outcome.verdict, client.approved) == (Verdict.FAILED, [])


async def test_a_hook_without_end_is_ended_at_its_limit(machine: Machine) -> None:
    async def hangs(_: Call) -> None:
        await asyncio.Event().wait()

    machine.plan = a_plan(a_step("drain", timeout=timedelta(milliseconds=10)))
    machine.hooks["drain"] = StubHook(does=hangs)
    async with machine.running(StubClient(a_document(an_event()))):
        await until(lambda: (p := machine.at()) and p.outcomes)

    progress = machine.at()
    assert progress is not None
    assert progress.outcomes[Turn(Phase.PREPARE, "drain")].verdict is Verdict.TIMED_OUT


async def test_events_of_other_vms_are_none_of_its_business(machine: Machine) -> None:
    client = StubClient(a_document(an_event(resources=("db_0",))))
    async with machine.running(client):
        client.tell(ChangeKind.APPEARED, an_event("B"))
        await until(lambda: machine.at("b"))

    assert machine.at() is None


async def test_what_is_gone_from_the_first_document_is_put_back(machine: Machine) -> None:
    """I30: the VM was restarted, and the event is over."""
    async with machine.running(StubClient(a_document(an_event()))):
        await until(lambda: is_approved(machine))

    client = StubClient(a_document())
    async with machine.running(client, boot="two"):
        await until(lambda: is_finished(machine))
        assert machine.reporter is not None
        assert machine.reporter.status().events[0].came_back

    assert machine.hooks["drain"].phases == [Phase.PREPARE, Phase.UNDO]
    assert client.approved == []


async def test_nothing_is_done_before_the_first_good_document(machine: Machine) -> None:
    """Stale, never empty: what the journal holds may be over, or not."""
    with Journal(machine.folder / "journal") as journal:
        journal.write(Planned(event_id=KEY, at=NOON, sighting=a_sighting(), plan=PLAN))
    client = StubClient(UnavailableError("gone"))
    async with machine.running(client) as runner:
        await until(lambda: client.reads)
        await asyncio.sleep(0)

        assert machine.hooks["drain"].calls == []
        assert machine.reporter is not None
        status = machine.reporter.status()
        assert not status.ready
        assert status.events[0].waits_for == "the first document since the agent started"
        assert runner.workers == {}


async def test_a_hook_that_was_running_when_the_agent_died_is_not_run_again(
    machine: Machine,
) -> None:
    """I30."""
    with Journal(machine.folder / "journal") as journal:
        journal.write(Planned(event_id=KEY, at=NOON, sighting=a_sighting(), plan=PLAN))
        journal.write(Began(event_id=KEY, at=NOON, turn=Turn(Phase.PREPARE, "drain")))
    client = StubClient(a_document(an_event()))
    async with machine.running(client):
        await until(lambda: (p := machine.at()) and p.outcomes)

    assert machine.hooks["drain"].calls == []
    assert client.approved == []


async def test_an_event_that_comes_back_after_it_was_gone_is_left_alone(machine: Machine) -> None:
    """I30: a server may show an old document once more."""
    client = StubClient(a_document(an_event()))
    async with machine.running(client):
        await until(lambda: is_approved(machine))
        client.tell(ChangeKind.GONE, an_event())
        await until(lambda: is_finished(machine))
        client.tell(ChangeKind.APPEARED, an_event(EVENT.upper()))
        client.tell(ChangeKind.APPEARED, an_event("B"))
        await until(lambda: (p := machine.at("b")) and p.approved)
        shown = warnings_of(machine)
        client.tell(ChangeKind.GONE, an_event())
        await until(lambda: not warnings_of(machine))

    assert shown == [f"event {EVENT} is shown again after it was gone: the agent ignores it"]
    assert machine.hooks["drain"].phases.count(Phase.UNDO) == 1
    assert len(machine.progress) == 2


async def test_an_event_that_came_back_is_shown_also_after_a_restart(machine: Machine) -> None:
    async with machine.running(StubClient(a_document(an_event()))):
        await until(lambda: is_approved(machine))
    async with machine.running(StubClient(a_document())):
        await until(lambda: is_finished(machine))

    async with machine.running(StubClient(a_document(an_event()))):
        await until(lambda: warnings_of(machine))


async def test_what_was_not_put_back_is_told_at_every_start(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """I30: the undo had begun when the agent died, and won't run again."""
    undo = Turn(Phase.UNDO, "drain")
    with Journal(machine.folder / "journal") as journal:
        journal.write(Planned(event_id=KEY, at=NOON, sighting=a_sighting(), plan=PLAN))
        prepared = HookOutcome(verdict=Verdict.DONE)
        turn = Turn(Phase.PREPARE, "drain")
        journal.write(Ended(event_id=KEY, at=NOON, turn=turn, outcome=prepared))
        journal.write(Gone(event_id=KEY, at=NOON))
        journal.write(Began(event_id=KEY, at=NOON, turn=undo))
    told = []
    for _ in range(2):
        async with machine.running(StubClient(a_document())):
            await until(lambda: is_finished(machine) and caplog.records)
            told.append([getattr(r, "steps", []) for r in caplog.records if r.levelname == "ERROR"])
            warnings = warnings_of(machine)
        caplog.clear()

    assert told == [[["drain"]], [["drain"]]]
    assert warnings == [
        f"event {EVENT} is over, but step 'drain' could not be undone",
    ]
    assert machine.hooks["drain"].calls == []


async def test_a_prepare_hook_is_ended_when_its_event_is_canceled(machine: Machine) -> None:
    async def waits(call: Call) -> None:
        if call.phase is Phase.PREPARE:
            call.save_notes({"state": "ready"})
            await asyncio.Event().wait()

    machine.hooks["drain"] = hook = StubHook(does=waits)
    client = StubClient(a_document(an_event()))
    async with machine.running(client):
        await until(lambda: hook.calls)
        # News of another kind does not end it.
        client.tell(ChangeKind.CHANGED, an_event(not_before=NOON + 16 * MINUTE))
        await until(lambda: (p := machine.at()) and p.sighting.not_before == NOON + 16 * MINUTE)
        assert hook.phases == [Phase.PREPARE]
        client.tell(ChangeKind.GONE, an_event())
        await until(lambda: is_finished(machine))

    progress = machine.at()
    assert progress is not None
    outcome = progress.outcomes[Turn(Phase.PREPARE, "drain")]
    assert outcome.verdict is Verdict.INTERRUPTED
    assert outcome.detail == "ended, because the event is gone"
    assert hook.phases == [Phase.PREPARE, Phase.UNDO]
    assert hook.calls[1].notes == {"state": "ready"}
    assert client.approved == []


async def test_an_approval_that_is_not_taken_is_sent_again(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = StubClient(a_document(an_event()))
    client.refusals = [UnavailableError("later")]
    async with machine.running(client):
        await until(lambda: not client.refusals)
        # Any news will do; otherwise it is sent again after two seconds.
        client.tell(ChangeKind.CHANGED, an_event(not_before=NOON + 16 * MINUTE))
        await until(lambda: is_approved(machine))

    assert client.approved == [EVENT]
    waits = [getattr(record, "waits_for", "") for record in caplog.records]
    assert "the service to accept the approval: later" in waits


async def test_an_approval_refused_because_it_has_started_is_fine(machine: Machine) -> None:
    client = StubClient(a_document(an_event()))
    client.refusals = [RefusedError(400, "it has started")]
    async with machine.running(client) as runner:
        await until(lambda: not client.refusals)
        client.tell(ChangeKind.STARTED, an_event(is_started=True))
        await until(lambda: runner.workers[KEY].waits_for == "the event to be over")

    assert client.approved == []


async def test_a_watch_that_fails_begins_again_with_a_whole_document(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forewarned.agent.event_loop._AGAIN", timedelta(0))
    client = StubClient(a_document(an_event()), UnavailableError("down"), a_document())
    async with machine.running(client) as runner:
        await until(lambda: is_approved(machine))
        client.fail(RefusedError(400, "what?"))
        await until(lambda: is_finished(machine))
        assert not runner.why_not_healthy()

    assert client.reads == 3
    assert machine.hooks["drain"].phases == [Phase.PREPARE, Phase.UNDO]


async def test_without_a_journal_nothing_runs_and_the_agent_ends(machine: Machine) -> None:
    """S17."""

    class FullDisk(Journal):
        def write(self, fact: object) -> Progress:  # type: ignore[explicit-override]  # a stub
            raise JournalError("the disk is full")

    client = StubClient(a_document(an_event()))
    with FullDisk(machine.folder / "journal") as journal:
        context = WorkerContext(
            me=ME,
            journal=journal,
            hooks=dict[str, Hook](machine.hooks),
            approve=client.approve,
            now=lambda: NOON,
            monotonic=monotonic,
            counters=Counters(),
        )
        runner = EventLoop(client, context, plan_for=lambda _: PLAN, poll=SECOND)
        with pytest.raises(ExceptionGroup) as failed:
            await runner.run()

    assert failed.group_contains(JournalError)
    assert machine.hooks["drain"].calls == []


async def test_a_step_is_undone_once_no_event_needs_it_any_more(machine: Machine) -> None:
    machine.plan = a_plan(a_step("drain", has_undo=True))
    client = StubClient(a_document(an_event(), an_event("B")))
    hook = machine.hooks["drain"]
    async with machine.running(client) as runner:
        await until(lambda: len(client.approved) == 2)
        client.tell(ChangeKind.GONE, an_event())
        await until(lambda: "event B to end" in runner.workers[KEY].waits_for)
        assert hook.phases == [Phase.PREPARE, Phase.PREPARE]

        client.tell(ChangeKind.GONE, an_event("B"))
        await until(lambda: hook.phases.count(Phase.UNDO) == 2)
        await until(lambda: not runner.workers)


async def test_what_two_hooks_change_is_put_back_once_neither_event_needs_it(
    machine: Machine,
) -> None:
    """The second has found the server drained, and would leave it so."""
    together = 0

    async def counts(_: Call) -> None:
        nonlocal together
        together += 1
        assert together == 1
        await asyncio.sleep(0)
        together -= 1

    plans = {EVENT: a_plan(a_step("drain", has_undo=True)), "B": a_plan(a_step("leave"))}
    machine.hooks = {name: StubHook(does=counts) for name in ("drain", "leave")}
    machine.targets = dict.fromkeys(machine.hooks, frozenset({"web/app"}))
    machine.plan_for = lambda sighting: plans[sighting.event_id]
    client = StubClient(a_document(an_event(), an_event("B")))
    async with machine.running(client) as runner:
        await until(lambda: len(client.approved) == 2)
        client.tell(ChangeKind.GONE, an_event())
        await until(lambda: "event B to end" in runner.workers[KEY].waits_for)
        assert machine.hooks["drain"].phases == [Phase.PREPARE]

        client.tell(ChangeKind.GONE, an_event("B"))
        await until(lambda: not runner.workers)

    assert machine.hooks["drain"].phases == [Phase.PREPARE, Phase.UNDO]


async def test_a_hook_never_runs_for_two_events_at_once(machine: Machine) -> None:
    together = 0

    async def counts(_: Call) -> None:
        nonlocal together
        together += 1
        assert together == 1
        await asyncio.sleep(0.01)
        together -= 1

    machine.hooks["drain"] = hook = StubHook(does=counts)
    client = StubClient(a_document(an_event(), an_event("B")))
    async with machine.running(client):
        await until(lambda: len(client.approved) == 2)

    assert hook.phases == [Phase.PREPARE, Phase.PREPARE]
    assert [
        p.outcomes[Turn(Phase.PREPARE, "drain")].verdict for p in machine.progress.values()
    ] == [
        Verdict.DONE,
        Verdict.DONE,
    ]


# --- all-ready -----------------------------------------------------------------------------------

SHARED = a_plan(a_step("drain"), leader=Leader.ALL_READY)
BOTH = an_event(resources=(ME, "web_1"))


async def test_the_last_to_be_ready_approves(machine: Machine) -> None:
    machine.readiness = readiness = StubReadiness()
    machine.plan = SHARED
    client = StubClient(a_document(BOTH))
    async with machine.running(client) as runner:
        await until(lambda: (a := runner.workers.get(KEY)) and "web_1" in a.waits_for)
        assert readiness.kept[EVENT][ME].standing is Standing.READY
        assert client.approved == []

        readiness.kept[EVENT]["WEB_1"] = ReadinessReport(standing=Standing.READY, beat=1)
        await until(lambda: client.approved)
        client.tell(ChangeKind.GONE, BOTH)
        await until(lambda: is_finished(machine))

    assert ME not in readiness.kept[EVENT]


async def test_whoever_may_not_approve_says_so_to_the_others(machine: Machine) -> None:
    machine.readiness = readiness = StubReadiness()
    machine.plan = SHARED
    machine.hooks["drain"] = StubHook(HookOutcome(verdict=Verdict.FAILED))
    client = StubClient(a_document(BOTH))
    async with machine.running(client):
        await until(lambda: (r := readiness.kept.get(EVENT)) and r[ME].standing is Standing.REFUSES)

    assert client.approved == []


async def test_while_the_others_cannot_be_told_it_does_not_approve(machine: Machine) -> None:
    machine.readiness = readiness = StubReadiness()
    readiness.trouble = ReadinessError("not mounted")
    machine.plan = SHARED
    client = StubClient(a_document(BOTH))
    async with machine.running(client) as runner:
        await until(lambda: (a := runner.workers.get(KEY)) and "not mounted" in a.waits_for)
        assert client.approved == []

        readiness.trouble = None
        readiness.kept[EVENT] = {"web_1": ReadinessReport(standing=Standing.READY, beat=1)}
        await until(lambda: client.approved)


# --- health --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "wait", "trouble", "says"),
    [
        (None, 0, None, "no document yet"),
        (None, 0, "down", "no document yet: down"),
        (30, 0, None, ""),
        (31, 0, None, "no document for 31 s"),
        (31, 60, None, ""),
        (91, 60, None, "no document for 91 s"),
        (31, 60, "down", "no document for 31 s: down"),
        (29, 0, "down", ""),
    ],
)
async def test_it_is_well_as_long_as_documents_come(
    age: int | None, wait: int, trouble: str | None, says: str
) -> None:
    """A request that the service holds is silent for as long as that was agreed on."""
    contact = a_contact(
        age=None if age is None else timedelta(seconds=age),
        wait=timedelta(seconds=wait),
        trouble=None if trouble is None else UnavailableError(trouble),
    )

    assert why_not_healthy(contact, None) == says
