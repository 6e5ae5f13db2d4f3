"""A rehearsal on this VM with the agent's file, and its result as JSON."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from forewarned.agent.assembly import make_hooks
from forewarned.agent.config.settings import AgentSettings
from forewarned.agent.journal import Journal, JournalError
from forewarned.agent.lock import StateInUseError, UnusableStateError, sole_agent
from forewarned.agent.rehearsal import Rehearsed, rehearse
from forewarned.agent.status.wire import Stage
from forewarned.cli.agent.naming import own_name
from forewarned.cli.agent.status import ask
from forewarned.cli.failures import RefusedError, UnreachableError
from forewarned.client import ScheduledEventsError
from forewarned.clock import monotonic, wall_clock
from forewarned.config.durations import format_duration

# Windows has no SIGHUP.
_ENDING: Final = frozenset({signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)})


def refuse_while_busy(settings: AgentSettings) -> None:
    """A live rehearsal must not undo what was prepared for a real event. Raises RefusedError."""
    for event_id in _open_events(settings):
        raise RefusedError(
            f"the agent of this VM is busy with event {event_id}",
            "Rehearse when that is over, or without --live.",
            code="at_work",
        )


def _open_events(settings: AgentSettings) -> list[str]:
    listen = settings.agent.listen
    if listen is not None and listen.port:
        with suppress(UnreachableError):
            told = ask(str(listen)).status.events
            return [event.event_id for event in told if event.stage is not Stage.FINISHED]
    # No agent answers, but one may have been cut short, or run without a listener.
    try:
        if not settings.journal.exists():
            return []
        with sole_agent(settings.agent.state), Journal(settings.journal) as journal:
            return [each.event_id for each in journal.events.values() if not each.is_finished]
    except (OSError, StateInUseError, UnusableStateError, JournalError) as error:
        raise RefusedError(
            f"can't find out whether the agent of this VM is busy: {error}", code="at_work"
        ) from error


async def rehearse_here(
    settings: AgentSettings, type_: str, *, live: bool
) -> tuple[str, Rehearsed]:
    """The VM's name, and the rehearsal."""
    me = settings.resource or await _known_name(settings)
    with _ended_gently():
        return me, await rehearse(
            settings,
            make_hooks(settings),
            type_,
            me=me,
            now=wall_clock(),
            monotonic=monotonic,
            live=live,
        )


@contextmanager
def _ended_gently() -> Iterator[None]:
    """A terminal that is closed ends the rehearsal as Ctrl-C does: what was prepared is put back.

    Raises RefusedError once that is done.
    """
    loop, rehearsing = asyncio.get_running_loop(), asyncio.current_task()
    assert rehearsing is not None  # noqa: S101 - for the type checker
    told: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        # Once: a second one must not end what puts things back.
        if not told:
            rehearsing.cancel()
        told.append(number)

    for number in _ENDING:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    except asyncio.CancelledError:
        if not told:
            raise
        raise RefusedError(
            f"the rehearsal was ended by {told[0].name}; what it had prepared was undone",
            code="ended",
        ) from None
    finally:
        for number in _ENDING:
            loop.remove_signal_handler(number)


async def _known_name(settings: AgentSettings) -> str:
    try:
        return await own_name(settings)
    except ScheduledEventsError as error:
        raise UnreachableError(
            f"can't find out this VM's name: {error}",
            "Set it as 'resource' in [agent], or set 'endpoint' to the metadata service.",
            code="unreachable",
        ) from error


def as_json(found: Rehearsed, *, resource: str) -> dict[str, object]:
    """A step that was not run has no verdict."""
    steps = [
        {
            "phase": step.turn.phase,
            "step": step.turn.step,
            "what": step.what,
            "verdict": None if step.outcome is None else step.outcome.verdict,
            "detail": "" if step.outcome is None else step.outcome.detail,
            "takes": format_duration(step.takes),
        }
        for step in found.steps
    ]
    fits = [
        {
            "type": fit.type,
            "rule": fit.rule,
            "notice": format_duration(fit.notice),
            "takes": format_duration(fit.takes),
            "left_out": fit.left_out,
            "missed": fit.is_missed,
        }
        for fit in found.fits
    ]
    return {
        "resource": resource,
        "type": found.type,
        "live": found.live,
        "rule": found.rule,
        "not_approved_because": found.not_approved_because,
        "steps": steps,
        "fits": fits,
    }
