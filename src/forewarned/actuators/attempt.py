"""One claimed task, from the first look at its VM to the report.

Invariant (I22): nothing is done to a VM before the server has confirmed, durably and for this very
attempt, that it is interrupted from now on. An attempt that has lost its task does nothing more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar, assert_never

from forewarned.actuators.decision import (
    Abort,
    Act,
    Done,
    Doubt,
    Failed,
    Procedure,
    Rest,
    Situation,
    Trouble,
    Wait,
    decide,
    pause_after,
)
from forewarned.actuators.desk import (
    RENEWAL,
    Assignment,
    DeskUnavailableError,
    TaskDesk,
)
from forewarned.actuators.driver import (
    Action,
    Driver,
    DriverError,
    Effect,
    RefusedError,
    Sighting,
    TryLaterError,
    Verdict,
    moves_only,
)
from forewarned.actuators.slots import Slots
from forewarned.core.errors import TaskLostError
from forewarned.core.tasks import LEASE

_log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_LOOK: Final = timedelta(seconds=0.2)
_LONGEST_BETWEEN_LOOKS: Final = timedelta(seconds=5)
_PATIENCE: Final = timedelta(seconds=60)
"""For a platform to answer a question."""
_LONGEST_ERROR: Final = 1000
_LONGEST_PROGRESS: Final = 200
_BETWEEN_NOTES: Final = timedelta(seconds=1)
_FIRST: Final = 1
"""The number of a task's first attempt."""
_SURE: Final = LEASE / 2
"""How long after the server's last confirmation an attempt may begin to act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What the attempts of one actuator share."""

    desk: TaskDesk
    driver: Driver
    slots: Slots
    dry_run: bool
    monotonic: Callable[[], timedelta]
    sleep: Callable[[timedelta], Awaitable[None]]


class Attempt:
    def __init__(
        self, assignment: Assignment, procedure: Procedure | None, equipment: Equipment
    ) -> None:
        """`procedure` is None where the actuator has none for events of this type."""
        self._task = assignment
        self._procedure = procedure
        self._at = equipment
        self._lost = asyncio.Event()
        self._confirmed = equipment.monotonic()
        """When the server last said that the task is this attempt's."""
        self._has_begun = False
        """Whether this attempt has reported so."""
        self._has_returned = False
        """Whether the driver has said that the action is issued."""
        self._tries = 0
        self._progress = ""
        self._noted = asyncio.Event()
        """Set when there is progress that the server has not been told of."""
        self.is_acting = False
        """Whether the driver is carrying the action out right now."""

    async def run(self) -> None:
        """Returns once the task is reported, or lost."""
        facts = {"task": self._task.key, "attempt": self._task.ref.attempt}
        beside = [asyncio.create_task(each) for each in (self._renew(), self._tell_progress())]
        try:
            await self._run()
        except TaskLostError:
            _log.info("a task no longer belongs to this actuator", extra=facts)
        except Exception as error:  # noqa: BLE001  # a driver may raise anything, and is reported
            _log.exception("an attempt failed unexpectedly", extra=facts)
            told = Failed(f"the actuator failed: {type(error).__name__}: {error}", unharmed=False)
            with suppress(TaskLostError):
                await self._report_failure(told, None)
        finally:
            for each in beside:
                each.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _run(self) -> None:
        if self._procedure is None:
            told = f"the actuator has no action for {self._task.type} events"
            await self._report_failure(Failed(told, unharmed=True), None)
            return
        async with AsyncExitStack() as held:
            await self._unless_lost(held.enter_async_context(self._at.slots.vm(self._task.vm)))
            if self._at.dry_run:
                await self._rehearse(self._procedure)
            else:
                await self._carry_out(self._procedure, held)

    async def _rehearse(self, procedure: Procedure) -> None:
        verdict = await self._survey(await self._up_to_date(procedure.action))
        what = verdict.reason or procedure.action.do
        would = "would" if verdict.possible else "would not"
        told = f"it was a dry run; a real run {would} have been possible: {what}"
        await self._report_failure(Failed(told, unharmed=True), None)

    async def _carry_out(self, procedure: Procedure, held: AsyncExitStack) -> None:
        began = self._at.monotonic()
        case = self._first_case(procedure, await self._look(began, procedure.timeout))
        pause = _FIRST_LOOK
        while True:
            match step := decide(case):
                case Act():
                    trouble = await self._act(case, held, began)
                    pause = _FIRST_LOOK
                    case = replace(
                        case,
                        begun=self._has_begun or case.begun,
                        returned=self._has_returned,
                        trouble=trouble,
                    )
                case Rest():
                    await self._pause(step.pause)
                    trouble = None if case.trouble is None else replace(case.trouble, rested=True)
                    case = replace(case, trouble=trouble)
                case Wait():
                    await self._pause(pause)
                    pause = min(pause * 1.5, _LONGEST_BETWEEN_LOOKS)
                case Abort():
                    await self._abort()
                    case = replace(case, aborted=True)
                case Done() | Failed() | Doubt():
                    await self._report(step, case)
                    return
                case other:
                    assert_never(other)
            is_busy_otherwise = bool(case.sighting.job) and not self._may_be_own(case)
            case = _seen(case, await self._look(began, procedure.timeout))
            case = replace(
                case,
                elapsed=self._at.monotonic() - began,
                # What the platform was at may have moved the VM, or restarted it.
                before=case.sighting if is_busy_otherwise else case.before,
            )

    def _may_be_own(self, case: Situation) -> bool:
        """Whether what the platform is at may be this task's work, by any of its attempts."""
        return case.begun or self._task.before is not None

    def _first_case(self, procedure: Procedure, sighting: Sighting | None) -> Situation:
        task, seen = self._task, sighting or Sighting()
        is_forgotten = self._is_forgotten(seen)
        case = Situation(
            key=task.key,
            procedure=procedure,
            # What the VM was before a forgotten action is forgotten as well.
            before=task.before or (Sighting() if is_forgotten else seen),
            begun=task.begun or is_forgotten,
            sighting=seen,
        )
        return _seen(case, sighting)

    def _is_forgotten(self, seen: Sighting) -> bool:
        """Whether the platform knows more of the task than the server.

        So it is after a failover to a standby that was behind: the task may be begun, or over. An
        earlier attempt that ended between its mark and its report leaves an intent too, but the
        server knows of that attempt, and nothing was issued.
        """
        if self._task.begun or self._task.before is not None or seen.intent != self._task.key:
            return False
        return seen.issued or self._task.ref.attempt == _FIRST

    # --- at the platform -------------------------------------------------------------------------

    async def _look(self, began: timedelta, limit: timedelta) -> Sighting | None:
        """A platform that does not answer is asked until the limit; then None."""
        failures = 0
        while True:
            self._refuse_if_lost()
            try:
                async with asyncio.timeout(_PATIENCE.total_seconds()):
                    return await self._at.driver.observe(self._task.vm)
            except (DriverError, TimeoutError) as error:
                if self._at.monotonic() - began >= limit:
                    return None
                failures += 1
                _log.warning(
                    "can't find out the state of a VM",
                    extra={"task": self._task.key, "why": str(error) or "it took too long"},
                )
                await self._pause(pause_after(failures))

    async def _survey(self, action: Action) -> Verdict:
        try:
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                return await self._at.driver.survey(action, self._task.vm)
        except (DriverError, TimeoutError) as error:
            return Verdict(possible=False, reason=str(error) or "the platform does not answer")

    async def _act(self, case: Situation, held: AsyncExitStack, began: timedelta) -> Trouble | None:
        """Carry the action out. Returns what went wrong, if something did."""
        action = replace(
            case.procedure.action,
            duration=self._task.duration,
            attempt=self._task.ref.attempt,
        )
        if not case.begun:
            verdict = await self._survey(await self._up_to_date(action))
            if not verdict.possible:
                return self._trouble(RefusedError(verdict.reason))
            if verdict.target is not None:
                await self._unless_lost(
                    held.enter_async_context(self._at.slots.target(verdict.target))
                )
        try:
            action = await self._prepare(case, action)
        except DriverError as error:
            return self._trouble(RefusedError(str(error)))
        left = case.procedure.timeout - (self._at.monotonic() - began)
        self.is_acting = True
        try:
            # The limit is also the driver's: what it leaves running, the next look shows.
            async with asyncio.timeout(max(left.total_seconds(), 0)):
                await self._at.driver.act(action, self._task.vm, self._task.key, self._note)
        except DriverError as error:
            return self._trouble(error)
        except TimeoutError:
            return None
        finally:
            self.is_acting = False
        self._has_returned = True
        return None

    async def _prepare(self, case: Situation, action: Action) -> Action:
        """Mark the intent, and have the server confirm that the VM is interrupted from now on."""
        if not self._has_begun:
            # The mark would hide that another attempt, which has the task by now, has acted.
            self._refuse_if_lost()
            await self._at.driver.mark(self._task.vm, self._task.key)
            await self._begin(case.before)
        # Asked since: a host may have been drained while this waited for room on it.
        action = await self._up_to_date(action)
        while self._at.monotonic() - self._confirmed > _SURE:
            # This process may have stood still for so long that the task is another's by now.
            await self._until_told(lambda: self._at.desk.renew(self._task.ref))
        self._refuse_if_lost()
        return action

    async def _abort(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                await self._at.driver.abort(self._task.vm, self._task.key)
        except (DriverError, TimeoutError) as error:
            _log.warning(
                "can't stop an action that takes too long",
                extra={"task": self._task.key, "why": str(error) or "it took too long"},
            )

    def _trouble(self, error: DriverError) -> Trouble:
        self._tries += 1
        _log.warning(
            "an action failed",
            extra={"task": self._task.key, "tries": self._tries, "why": str(error)},
        )
        return Trouble(
            error=str(error),
            tries=self._tries,
            nothing_done=isinstance(error, RefusedError | TryLaterError),
            later=isinstance(error, TryLaterError),
        )

    def _note(self, progress: str) -> None:
        _log.info("progress", extra={"task": self._task.key, "at": progress})
        self._progress = progress[:_LONGEST_PROGRESS]
        self._noted.set()

    # --- at the server ---------------------------------------------------------------------------

    async def _begin(self, before: Sighting) -> None:
        await self._until_told(lambda: self._at.desk.begin(self._task.ref, before))
        self._has_begun = True

    async def _report(self, step: Done | Failed | Doubt, case: Situation) -> None:
        match step:
            case Done():
                if not self._has_begun:
                    await self._begin(case.before)
                await self._until_told(lambda: self._at.desk.finish(self._task.ref, case.sighting))
                _log.info("a task is done", extra={"task": self._task.key})
            case Failed():
                await self._report_failure(step, case.sighting)
            case Doubt():
                await self._report_failure(Failed(step.why, unharmed=False), case.sighting)

    async def _report_failure(self, failed: Failed, after: Sighting | None) -> None:
        error = (failed.error or "the driver gave no reason")[:_LONGEST_ERROR]
        _log.error("a task was not carried out", extra={"task": self._task.key, "why": error})
        await self._until_told(
            lambda: self._at.desk.fail(
                self._task.ref,
                error,
                unharmed=failed.unharmed,
                after=after,
            )
        )

    async def _up_to_date(self, action: Action) -> Action:
        """The action with what is known now about where the VM may be moved."""
        if Effect.MOVES not in action.effects:
            return action
        found = await self._until_answered(lambda: self._at.desk.destination(self._task.ref))
        if found.has_to_move:
            action = moves_only(action)
        return replace(action, cordoned=found.cordoned, target=found.target)

    async def _until_told(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Make a report. Raises TaskLostError."""

        async def confirmed() -> None:
            asked = self._at.monotonic()
            await tell()
            self._confirmed = asked

        await self._until_answered(confirmed)

    async def _until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask, for as long as the server can't be reached. Raises TaskLostError."""
        failures = 0
        while True:
            self._refuse_if_lost()
            try:
                return await ask()
            except DeskUnavailableError as error:
                failures += 1
                _log.warning(
                    "the server can't be reached for now",
                    extra={"task": self._task.key, "why": str(error)},
                )
                await self._pause(pause_after(failures))

    async def _renew(self) -> None:
        while not self._lost.is_set():
            await self._at.sleep(RENEWAL)
            await self._renew_now()

    async def _tell_progress(self) -> None:
        """As soon as there is some, but no more often than people look."""
        while not self._lost.is_set():
            await self._noted.wait()
            self._noted.clear()
            await self._renew_now(self._progress)
            await self._at.sleep(_BETWEEN_NOTES)

    async def _renew_now(self, progress: str = "") -> None:
        asked = self._at.monotonic()
        try:
            await self._at.desk.renew(self._task.ref, progress)
        except TaskLostError:
            self._lost.set()
        except DeskUnavailableError:
            # What was claimed stays claimed for a while, and reports are made later.
            return
        else:
            self._confirmed = asked

    # --- waiting ---------------------------------------------------------------------------------

    def _refuse_if_lost(self) -> None:
        if self._lost.is_set():
            raise TaskLostError(self._task.key, self._task.ref.attempt)

    async def _pause(self, span: timedelta) -> None:
        await self._unless_lost(self._at.sleep(span))

    async def _unless_lost(self, awaited: Awaitable[T]) -> T:
        """Raises TaskLostError as soon as the task is lost."""
        waiting = asyncio.ensure_future(awaited)
        lost = asyncio.create_task(self._lost.wait())
        try:
            await asyncio.wait((waiting, lost), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise TaskLostError(self._task.key, self._task.ref.attempt)
            return waiting.result()
        finally:
            for each in (waiting, lost):
                each.cancel()
            await asyncio.gather(waiting, lost, return_exceptions=True)


def _seen(case: Situation, sighting: Sighting | None) -> Situation:
    """None where the platform has not answered."""
    return replace(case, sighting=sighting or Sighting(), unanswered=sighting is None)
