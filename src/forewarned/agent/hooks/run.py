"""One run of one hook, from its beginning to its end, for a real event or a rehearsed one."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.model import HookOutcome, Phase, Verdict
from forewarned.config.durations import format_duration

_log = logging.getLogger(__name__)


async def run_hook(
    hook: Hook | None, call: Call, *, monotonic: Callable[[], timedelta]
) -> HookOutcome:
    """Ends the hook at its limit. Whatever it raises becomes its outcome."""
    if hook is None:
        detail = "the agent's file no longer has a hook of this name"
        return HookOutcome(verdict=Verdict.FAILED, detail=detail)
    began = monotonic()
    run = hook.undo if call.phase is Phase.UNDO else hook.run
    try:
        async with asyncio.timeout(call.limit.total_seconds()) as limit:
            outcome = await run(call)
    except Exception as error:  # noqa: BLE001  # a hook may raise anything
        took = monotonic() - began
        if isinstance(error, TimeoutError) and limit.expired():
            detail = f"ended at its limit of {format_duration(call.limit)}"
            return HookOutcome(verdict=Verdict.TIMED_OUT, detail=detail, took=took)
        # A bug in a hook must not keep the others from running.
        _log.exception("hook failed with an exception", extra={"event": call.sighting.event_id})
        detail = f"{type(error).__name__}: {error}"
        return HookOutcome(verdict=Verdict.FAILED, detail=detail, took=took)
    return outcome if outcome.took is not None else replace(outcome, took=monotonic() - began)
