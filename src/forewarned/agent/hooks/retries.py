"""A hook of any kind with its limit, its retries, and outcomes in place of exceptions.

Invariants: the next attempt knows what an earlier one has kept, so that it never takes our own
change for someone else's; and putting back is retried until its limit wherever a retry does no
harm, because a node that stays drained forever is worse than a late one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.model import HookOutcome, Phase, Verdict
from forewarned.targets.errors import TargetError

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 5.0
_EARLY: Final = 0.2
"""Seconds before its limit at which a hook ends itself, so that it can still say why."""
_CHECKING: Final = 15.0
"""Seconds that a check of a target may take."""
_LONGEST_DETAIL: Final = 500


class VetoError(Exception):
    """The hook's target says that the event must not be approved."""


class RetryingHook:
    """Making one has no side effects."""

    def __init__(self, work: HookTable) -> None:
        self._work = work

    async def run(self, call: Call) -> HookOutcome:
        return await self._within_limit(call, self._work.run, retries=self._work.retries)

    async def undo(self, call: Call) -> HookOutcome:
        retries = None if self._work.retries_undo else self._work.retries
        return await self._within_limit(call, self._work.put_back, retries=retries)

    async def check(self) -> list[str]:
        try:
            async with asyncio.timeout(_CHECKING):
                return await self._work.check()
        except TargetError as error:
            return [str(error)]
        except TimeoutError:
            return [f"no answer within {_CHECKING:.0f} s"]

    def describe(self, phase: Phase) -> str:
        return self._work.describe(phase)

    async def _within_limit(
        self, call: Call, work: Callable[[Call], Awaitable[str]], *, retries: int | None
    ) -> HookOutcome:
        attempts = _Attempts(call)
        try:
            async with asyncio.timeout(_own_limit(call.limit)):
                verdict, detail = await attempts.make(work, retries)
        except TimeoutError:
            verdict, detail = Verdict.TIMED_OUT, attempts.why_late()
        return HookOutcome(verdict=verdict, detail=_shortened(detail), notes=attempts.kept)


class _Attempts:
    """One turn of a hook: as many attempts as it needs, or is allowed."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.kept: dict[str, str] = {}
        self._waits_for = ""
        self._failure = ""

    async def make(
        self, work: Callable[[Call], Awaitable[str]], retries: int | None
    ) -> tuple[Verdict, str]:
        pause = _FIRST_PAUSE
        made = 0
        while True:
            call = self._call
            notes = {**call.notes, **self.kept}
            try:
                told = await work(
                    replace(
                        call,
                        notes=notes,
                        save_notes=self._save_notes,
                        waiting_for=self._waiting_for,
                    )
                )
            except VetoError as error:
                return Verdict.VETOED, str(error)
            except TargetError as error:
                self._failure = str(error)
                if retries is not None and made >= retries:
                    return Verdict.FAILED, self._failure
            else:
                return Verdict.DONE, told
            made += 1
            self._waiting_for(f"another attempt: {self._failure}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def why_late(self) -> str:
        if self._waits_for:
            return f"still waiting for {self._waits_for}"
        return self._failure

    def _save_notes(self, notes: Mapping[str, str]) -> None:
        self._call.save_notes(notes)
        self.kept.update(notes)

    def _waiting_for(self, waits_for: str) -> None:
        self._waits_for = waits_for
        self._call.waiting_for(waits_for)


def _own_limit(limit: timedelta) -> float:
    seconds = limit.total_seconds()
    return seconds - min(_EARLY, seconds / 10)


def _shortened(detail: str) -> str:
    return detail if len(detail) <= _LONGEST_DETAIL else f"{detail[: _LONGEST_DETAIL - 1]}…"
