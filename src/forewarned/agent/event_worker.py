"""What the agent does about one event, from when it is first seen until all is put back.

Invariants: a step is in the journal before it is taken, and only the journal decides what comes
next. An agent that stops cancels the running hook and writes nothing about it. To the journal a
stop is a crash: how far the hook came is not known. So there is only one way to continue, and it is
always used.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.hooks.run import run_hook
from forewarned.agent.journal import Approved, Began, Ended, Finished, Journal, Noted, Reported
from forewarned.agent.model import HookOutcome, Phase, Progress, Turn, Verdict
from forewarned.agent.overlaps import Targets, held_back_by, touched_by
from forewarned.agent.plan import (
    Action,
    ApproveNow,
    Finish,
    ReportReady,
    Run,
    Settle,
    Wait,
    next_action,
    not_put_back,
    time_left,
)
from forewarned.agent.readiness.heartbeat import Heartbeat
from forewarned.agent.readiness.ports import Readiness, ReadinessError
from forewarned.agent.status.metrics import Counters
from forewarned.client import ScheduledEventsError
from forewarned.config.durations import format_duration

_log = logging.getLogger(__name__)

_ASK_AGAIN: Final = timedelta(seconds=2)
"""After an approval or a report that did not get through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What the workers of one agent share."""

    me: str
    journal: Journal
    hooks: Mapping[str, Hook]
    approve: Callable[[str], Awaitable[None]]
    """Raises ScheduledEventsError."""
    now: Callable[[], datetime]
    """The time that NotBefore is compared with."""
    monotonic: Callable[[], timedelta]
    """A steady clock, for how long things take."""
    counters: Counters
    readiness: Readiness | None = None
    """None where no rule asks for it."""
    ready_timeout: timedelta = timedelta(minutes=2)
    targets: Targets = field(default_factory=dict)
    """What hooks change, by their names."""
    locks: Mapping[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """A hook never runs for two events at once, and no two hooks on the same target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A hook that is running now."""

    turn: Turn
    limit: timedelta
    began: timedelta
    """By the steady clock."""


class EventWorker:
    """Handles one event. `key` is its id in the journal."""

    def __init__(self, key: str, context: WorkerContext) -> None:
        self.key = key
        self.running: Running | None = None
        self.waits_for = ""
        self._context = context
        self._news = asyncio.Event()
        self._heartbeat: Heartbeat | None = None

    @property
    def progress(self) -> Progress:
        return self._context.journal.events[self.key]

    def wake(self) -> None:
        """Something has changed, about this event or another."""
        self._news.set()

    async def run(self) -> None:
        """Returns once all is done about the event. Raises JournalError."""
        context = self._context
        if context.readiness is None:
            await self._go()
            return
        self._heartbeat = Heartbeat(
            context.readiness,
            me=context.me,
            progress=lambda: self.progress,
            patience=context.ready_timeout,
            on_change=self.wake,
            monotonic=context.monotonic,
        )
        async with self._heartbeat:
            await self._go()

    async def _go(self) -> None:
        while True:
            self._news.clear()
            action = self._next()
            if action is None:
                return
            await self._act(action)

    def _next(self) -> Action | None:
        ready = () if self._heartbeat is None else self._heartbeat.ready()
        context = self._context
        return next_action(self.progress, me=context.me, now=context.now(), ready=ready)

    async def _act(self, action: Action) -> None:
        journal, now = self._context.journal, self._context.now
        match action:
            case Run():
                await self._take_turn(action)
            case Settle(turn=turn, outcome=outcome):
                self._end(turn, outcome)
            case ReportReady():
                await self._report()
            case ApproveNow():
                await self._approve()
            case Wait(why=why):
                await self._wait(why)
            case Finish():
                if self._heartbeat is not None:
                    await self._heartbeat.leave()
                journal.write(Finished(event_id=self.key, at=now()))
                self.waits_for = ""
                _log.info("event finished", extra={"event": self.progress.event_id})
                tell_if_left_changed(self.progress)

    async def _wait(self, why: str, *, at_most: timedelta | None = None) -> None:
        if why != self.waits_for:
            self.waits_for = why
            _log.info("waiting", extra={"event": self.progress.event_id, "waits_for": why})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if at_most is None else at_most.total_seconds()):
                await self._news.wait()

    # --- hooks ----------------------------------------------------------------------------------

    async def _take_turn(self, action: Run) -> None:
        turn = action.turn
        other = self._held_back_by(turn)
        if other is not None:
            await self._wait(
                f"event {other} to end: undoing {turn.step!r} would revert something that it still"
                " needs"
            )
            return
        # Every worker in the same order, so that no two wait for each other.
        touched = sorted(touched_by(turn.step, self._context.targets))
        locks = [self._context.locks[target] for target in touched]
        if any(lock.locked() for lock in locks):
            self.waits_for = (
                f"a step of another event that changes the same target as {turn.step!r}"
            )
        async with contextlib.AsyncExitStack() as stack:
            for lock in locks:
                await stack.enter_async_context(lock)
            # Meanwhile the event may have gone, or another may have come.
            now = self._next()
            if isinstance(now, Run) and now.turn == turn and self._held_back_by(turn) is None:
                await self._run(now)

    def _held_back_by(self, turn: Turn) -> str | None:
        return held_back_by(self.key, turn, self._context.journal.events, self._context.targets)

    async def _run(self, action: Run) -> None:
        context, turn = self._context, action.turn
        context.journal.write(Began(event_id=self.key, at=context.now(), turn=turn))
        self.running = Running(turn=turn, limit=action.limit, began=context.monotonic())
        self.waits_for = f"step {turn.step!r} ({turn.phase}) to end"
        facts = {"event": self.progress.event_id, "phase": str(turn.phase), "step": turn.step}
        _log.info("hook started", extra=facts | {"limit": format_duration(action.limit)})
        try:
            outcome = await self._as_long_as_needed(action)
        finally:
            self.running = None
        self._end(turn, outcome)

    async def _as_long_as_needed(self, action: Run) -> HookOutcome:
        """The hook's outcome. A prepare is ended when its event goes: it is not needed any more."""
        monotonic = self._context.monotonic
        began, hook = monotonic(), self._context.hooks.get(action.turn.step)
        run = asyncio.create_task(run_hook(hook, self._call(action), monotonic=monotonic))
        try:
            while not run.done():
                self._news.clear()
                if action.turn.phase is Phase.PREPARE and self.progress.is_gone:
                    break
                news = asyncio.create_task(self._news.wait())
                await asyncio.wait({run, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
        finally:
            # Also when the agent is stopped: no hook outlives it.
            run.cancel()
            await asyncio.wait({run})
        if not run.cancelled():
            return run.result()
        detail = "ended, because the event is gone"
        took = monotonic() - began
        return HookOutcome(verdict=Verdict.INTERRUPTED, detail=detail, took=took)

    def _call(self, action: Run) -> Call:
        progress, context, turn = self.progress, self._context, action.turn
        now = context.now()
        is_ahead = not progress.is_gone and not progress.sighting.is_started

        def save_notes(notes: Mapping[str, str]) -> None:
            noted = Noted(event_id=self.key, at=context.now(), turn=turn, notes=dict(notes))
            context.journal.write(noted)

        def waiting_for(waits_for: str) -> None:
            self.waits_for = f"step {turn.step!r} ({turn.phase}): {waits_for}"

        return Call(
            sighting=progress.sighting,
            me=context.me,
            step=turn.step,
            phase=turn.phase,
            limit=action.limit,
            time_left=time_left(progress.sighting, now) if is_ahead else None,
            notes=progress.notes(turn.step) if turn.phase is Phase.UNDO else {},
            now=now,
            save_notes=save_notes,
            waiting_for=waiting_for,
        )

    def _end(self, turn: Turn, outcome: HookOutcome) -> None:
        context = self._context
        context.journal.write(
            Ended(event_id=self.key, at=context.now(), turn=turn, outcome=outcome)
        )
        context.counters.ended(turn, outcome)
        level = _LEVELS.get(outcome.verdict, logging.WARNING)
        facts = {
            "event": self.progress.event_id,
            "phase": str(turn.phase),
            "step": turn.step,
            "verdict": str(outcome.verdict),
            "detail": outcome.detail,
        }
        if outcome.took is not None:
            facts["took"] = format_duration(outcome.took)
        _log.log(level, "hook ended", extra=facts)

    # --- approval -------------------------------------------------------------------------------

    async def _report(self) -> None:
        if self._heartbeat is None:
            # The plan was made when the file had a `readiness`. Without one the agents can't learn
            # of each other, so NotBefore decides.
            await self._wait(
                'NotBefore: the agent\'s file no longer sets readiness, which "all-ready" needs'
            )
            return
        try:
            await self._heartbeat.beat()
        except ReadinessError as error:
            await self._wait(
                f"the other agents, which can't be reached: {error}", at_most=_ASK_AGAIN
            )
            return
        self._context.journal.write(Reported(event_id=self.key, at=self._context.now()))

    async def _approve(self) -> None:
        context, event_id = self._context, self.progress.event_id
        self.waits_for = "the service to accept the approval"
        try:
            await context.approve(event_id)
        except ScheduledEventsError as error:
            # Refused: the event may have started or be over, and the next document will say so.
            # Not answered: it is sent again, until NotBefore.
            context.counters.approvals_failed += 1
            await self._wait(f"the service to accept the approval: {error}", at_most=_ASK_AGAIN)
            return
        # Recorded only afterwards: approving twice changes nothing, but an approval that was
        # recorded and never sent would cost the whole notice.
        context.journal.write(Approved(event_id=self.key, at=context.now()))
        context.counters.approvals += 1
        _log.info("event approved", extra={"event": event_id})


_LEVELS: Final = {Verdict.DONE: logging.INFO, Verdict.SKIPPED: logging.INFO}


def tell_if_left_changed(progress: Progress) -> None:
    """Logged when it happens and at each start of the agent: an operator has to put it back."""
    if steps := not_put_back(progress):
        _log.error(
            "steps were not undone: undo their changes by hand",
            extra={"event": progress.event_id, "steps": list(steps)},
        )
