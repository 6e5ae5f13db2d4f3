"""Limits, retries and notes are the same for every kind of hook."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from msgspec import field
from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.retries import RetryingHook, VetoError
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.model import HookOutcome, Phase, Verdict
from forewarned.targets.errors import TargetError
from tests.agent.hooks.calls import Told, a_call


class Scripted(HookTable, frozen=True, kw_only=True):
    """Does, attempt by attempt, what a test says."""

    attempts: list[Callable[[Call], str]]
    calls: list[Call] = field(default_factory=list)

    @override
    async def run(self, call: Call) -> str:
        self.calls.append(call)
        return self.attempts[min(len(self.calls), len(self.attempts)) - 1](call)

    @override
    async def put_back(self, call: Call) -> str:
        return await self.run(call)

    @override
    async def check(self) -> list[str]:
        raise TargetError("it is not there")


class Repeatable(Scripted, frozen=True, kw_only=True):
    retries_undo = True


def fails(_: Call) -> str:
    raise TargetError("the wall is in the way")


def vetoes(_: Call) -> str:
    raise VetoError("not today")


def succeeds(_: Call) -> str:
    return "all is well"


def changes_and_fails(call: Call) -> str:
    call.save_notes({"changed": "web/1"})
    raise TargetError("half way")


async def test_a_failure_is_an_outcome_and_not_an_exception() -> None:
    outcome = await RetryingHook(Scripted(attempts=[fails])).run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == "the wall is in the way"


async def test_a_failure_is_tried_again_as_often_as_the_file_says() -> None:
    once_more = Scripted(attempts=[fails, succeeds], retries=1)
    too_bad = Scripted(attempts=[fails], retries=1)

    well = await RetryingHook(once_more).run(a_call())
    ill = await RetryingHook(too_bad).run(a_call())

    assert (well.verdict, well.detail) == (Verdict.DONE, "all is well")
    assert ill.verdict is Verdict.FAILED
    assert len(too_bad.calls) == 2


async def test_a_veto_is_not_asked_for_twice() -> None:
    work = Scripted(attempts=[vetoes], retries=5)

    outcome = await RetryingHook(work).run(a_call())

    assert (outcome.verdict, outcome.detail) == (Verdict.VETOED, "not today")
    assert len(work.calls) == 1


async def test_the_next_attempt_knows_what_the_last_one_has_kept() -> None:
    """I30: else it would take our own change for somebody else's."""
    told = Told()
    work = Scripted(attempts=[changes_and_fails, succeeds], retries=1)

    outcome = await RetryingHook(work).run(a_call(told=told))

    assert [dict(call.notes) for call in work.calls] == [{}, {"changed": "web/1"}]
    assert told.notes == {"changed": "web/1"}
    assert outcome.notes == {"changed": "web/1"}


async def test_a_hook_that_fails_leaves_its_notes_for_its_undo() -> None:
    outcome = await RetryingHook(Scripted(attempts=[changes_and_fails])).run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.notes == {"changed": "web/1"}


async def test_an_undo_that_can_be_repeated_is_tried_until_it_works() -> None:
    work = Repeatable(attempts=[fails, fails, succeeds])

    outcome = await RetryingHook(work).undo(a_call(Phase.UNDO))

    assert outcome.verdict is Verdict.DONE
    assert len(work.calls) == 3


async def test_an_undo_that_can_not_be_repeated_runs_once() -> None:
    """I30."""
    work = Scripted(attempts=[fails])

    outcome = await RetryingHook(work).undo(a_call(Phase.UNDO))

    assert outcome.verdict is Verdict.FAILED
    assert len(work.calls) == 1


async def test_a_limit_ends_it_and_says_what_it_waited_for() -> None:
    class Waiting(Scripted, frozen=True, kw_only=True):
        @override
        async def run(self, call: Call) -> str:
            call.save_notes({"changed": "web/1"})
            call.waiting_for("the sessions of web/1")
            await asyncio.Event().wait()
            return ""

    limit = timedelta(milliseconds=200)
    outcome: HookOutcome = await RetryingHook(Waiting(attempts=[])).run(a_call(limit=limit))

    assert outcome.verdict is Verdict.TIMED_OUT
    assert outcome.detail == "still waiting for the sessions of web/1"
    assert outcome.notes == {"changed": "web/1"}


async def test_what_check_can_not_reach_is_a_problem_and_not_an_exception() -> None:
    assert await RetryingHook(Scripted(attempts=[])).check() == ["it is not there"]
