"""One run of one hook, from its beginning to its end, for a real event or a rehearsed one."""

import asyncio
import logging
from dataclasses import replace

from forewarned.agent.hook import Call, Hook
from forewarned.agent.model import HookOutcome, Phase, Verdict
from forewarned.clock import monotonic
from forewarned.config.durations import format_duration

_log = logging.getLogger(__name__)


async def run_hook(hook: Hook | None, call: Call) -> HookOutcome:
    """What came of it, whatever it does: hooks are ended at their limit, and may have mistakes."""
    if hook is None:
        detail = "the agent's file has no hook of this name any more"
        return HookOutcome(verdict=Verdict.FAILED, detail=detail)
    began = monotonic()
    run = hook.undo if call.phase is Phase.UNDO else hook.run
    try:
        async with asyncio.timeout(call.limit.total_seconds()) as limit:
            outcome = await run(call)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what came of the hook
        took = monotonic() - began
        if isinstance(error, TimeoutError) and limit.expired():
            detail = f"ended after {format_duration(call.limit)}, which is its limit"
            return HookOutcome(verdict=Verdict.TIMED_OUT, detail=detail, took=took)
        # A mistake in a hook must not keep the others from running.
        _log.exception("hook raised", extra={"event": call.sighting.event_id})
        detail = f"{type(error).__name__}: {error}"
        return HookOutcome(verdict=Verdict.FAILED, detail=detail, took=took)
    return outcome if outcome.took is not None else replace(outcome, took=monotonic() - began)
