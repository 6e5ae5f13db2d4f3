"""Rehearsals: what a whole event would take on this VM."""

import asyncio
from pathlib import Path

import pytest

from forewarned.agent.config.settings import AgentSettings, parse
from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.model import HookOutcome, Phase, Verdict
from forewarned.agent.rehearsal import NOTICE, Rehearsed, fit, rehearse
from forewarned.clock import monotonic
from forewarned.core import notice
from forewarned.core.model import EventType
from tests.agent.journeys import ME, a_plan, a_step
from tests.agent.stubs import StubHook
from tests.builders import MINUTE, NOON, SECOND

pytestmark = pytest.mark.anyio

FILE = """
[hooks.drain]
kind = "command"
argv = ["drain"]
undo_argv = ["undrain"]
timeout = "6m"
expected = "2m"
[hooks.report]
kind = "command"
argv = ["report"]
timeout = "4m"
cut = 1
[hooks.check]
kind = "command"
argv = ["check"]
[[rules]]
name = "evicted"
type = ["Preempt"]
prepare = ["report"]
[[rules]]
name = "others"
prepare = ["drain", "report"]
recover = ["check"]
"""


def settings() -> AgentSettings:
    return parse(FILE, path=Path("agent.toml"))


def hooks(**others: StubHook) -> dict[str, StubHook]:
    return {name: StubHook() for name in ("drain", "report", "check")} | others


async def play(
    hooks: dict[str, StubHook], *, live: bool = True, type_: str = "Reboot"
) -> Rehearsed:
    made: dict[str, Hook] = dict(hooks)
    return await rehearse(settings(), made, type_, me=ME, now=NOON, monotonic=monotonic, live=live)


async def test_a_rehearsal_runs_nothing_unless_it_is_live() -> None:
    stubs = hooks()

    found = await play(stubs, live=False)

    assert not any(hook.calls for hook in stubs.values())
    assert [(step.turn, step.takes) for step in found.steps] == [
        (("prepare", "drain"), 2 * MINUTE),
        (("prepare", "report"), 4 * MINUTE),
        (("undo", "drain"), 2 * MINUTE),
        (("recover", "check"), 30 * SECOND),
    ]
    assert found.steps[0].what == "prepare something"
    assert (found.rule, found.not_approved_because, found.is_ready) == ("others", None, True)


async def test_a_live_one_prepares_and_puts_back_and_measures() -> None:
    notes = HookOutcome(verdict=Verdict.DONE, took=SECOND, notes={"was": "up"})
    stubs = hooks(drain=StubHook(notes))

    found = await play(stubs)

    assert stubs["drain"].phases == [Phase.PREPARE, Phase.UNDO]
    assert stubs["drain"].calls[1].notes == {"was": "up"}
    assert stubs["check"].phases == [Phase.RECOVER]
    assert stubs["drain"].calls[0].time_left is not None
    assert found.steps[0].takes == SECOND
    assert found.is_ready
    by_type = {each.type: each for each in found.fits}
    # The drain took a second; the report, whatever it took here, is in both.
    assert SECOND <= by_type["Redeploy"].takes < 2 * SECOND
    assert found.missed == ()


async def test_each_type_is_compared_with_its_own_notice_by_its_own_rule() -> None:
    found = await play(hooks(), live=False)

    by_type = {each.type: each for each in found.fits}
    assert by_type.keys() == NOTICE.keys()
    assert by_type["Preempt"].rule == "evicted"
    assert by_type["Preempt"].left_out == ("report",)
    assert by_type["Terminate"].left_out == ("report",)
    assert by_type["Terminate"].takes == 2 * MINUTE
    assert by_type["Redeploy"].left_out == ()


async def test_a_type_is_missed_if_what_may_not_be_left_out_takes_longer_than_its_notice() -> None:
    plan = a_plan(a_step("drain", timeout=6 * MINUTE), a_step("tell", timeout=SECOND, cut=1))

    assert fit("Terminate", plan, {}).is_missed
    assert not fit("Terminate", plan, {"drain": MINUTE}).is_missed
    assert not fit("Freeze", plan, {}).is_missed


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.VETOED, Verdict.TIMED_OUT])
async def test_a_step_that_goes_wrong_is_told_and_put_back_all_the_same(verdict: Verdict) -> None:
    stubs = hooks(drain=StubHook(HookOutcome(verdict=verdict, took=SECOND)))

    found = await play(stubs)

    assert not found.is_ready
    assert "'drain'" in (found.not_approved_because or "")
    assert stubs["drain"].phases == [Phase.PREPARE, Phase.UNDO]
    assert stubs["report"].phases == [Phase.PREPARE]


async def test_whoever_has_enough_of_it_leaves_nothing_drained() -> None:
    """Ctrl-C in the middle of a live rehearsal."""
    is_running = asyncio.Event()

    async def hangs(call: Call) -> None:
        call.save_notes({"was": "up"})
        if call.phase is Phase.PREPARE:
            is_running.set()
            await asyncio.Event().wait()

    stubs = hooks(drain=StubHook(does=hangs))
    task = asyncio.create_task(play(stubs))
    await is_running.wait()

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert stubs["drain"].phases == [Phase.PREPARE, Phase.UNDO]
    assert stubs["drain"].calls[1].notes == {"was": "up"}
    assert stubs["report"].phases == []


def test_a_rehearsal_gives_the_notice_that_the_service_gives() -> None:
    """The agent knows nothing of the server, so it has the figures a second time."""
    given = {
        type_: notice.minimum(type_, ()) for type_ in EventType if type_ is not EventType.TERMINATE
    }

    assert given | {EventType.TERMINATE: notice.DEFAULT_TERMINATE} == NOTICE
