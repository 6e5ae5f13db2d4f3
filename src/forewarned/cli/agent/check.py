"""Checks of what the agent's file names: hooks' targets, its state, its metadata."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from forewarned.agent.assembly import open_readiness
from forewarned.agent.config.settings import (
    AgentSettings,
    DirectoryReadiness,
    ForewarnedReadiness,
    KubernetesReadiness,
)
from forewarned.agent.hooks.kinds import KINDS
from forewarned.agent.hooks.retries import RetryingHook
from forewarned.agent.readiness.ports import ReadinessError
from forewarned.cli.agent.naming import found_endpoint, knows_instances, look_for_events, own_name
from forewarned.client import ProtocolError, RefusedError, ScheduledEventsError

PATIENCE: Final = timedelta(seconds=15)
"""For each target: a check is a question that should be answered at once."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    problems: tuple[str, ...]


async def check_targets(settings: AgentSettings, *, patience: timedelta = PATIENCE) -> list[Target]:
    """All at once. Nothing is changed, and no event is read."""
    wanted: list[tuple[str, str, Callable[[], Awaitable[list[str]]]]] = [
        ("agent.endpoint", "metadata", lambda: _metadata(settings)),
        ("agent.state", "directory", lambda: _state(settings.agent.state)),
    ]
    readiness = settings.agent.readiness
    if isinstance(readiness, DirectoryReadiness):
        wanted.append(("agent.readiness", "directory", lambda: _shared(readiness.path)))
    elif isinstance(readiness, ForewarnedReadiness):
        wanted.append(("agent.readiness", "forewarned", lambda: _served(settings)))
    elif readiness is not None:
        wanted.append(("agent.readiness", "kubernetes", lambda: _leases(readiness)))
    for name, hook in settings.hooks.items():
        kind = next(kind for kind, type_ in KINDS.items() if type_ is type(hook))
        wanted.append((f"hooks.{name}", kind, RetryingHook(hook).check))
    return await asyncio.gather(
        *(_checked(name, kind, check, patience) for name, kind, check in wanted)
    )


async def _checked(
    name: str, kind: str, check: Callable[[], Awaitable[list[str]]], patience: timedelta
) -> Target:
    try:
        async with asyncio.timeout(patience.total_seconds()):
            problems = await check()
    except TimeoutError:
        problems = [f"no answer within {patience.total_seconds():g} s"]
    except (ScheduledEventsError, ReadinessError) as error:
        problems = [str(error)]
    return Target(name=name, kind=kind, problems=tuple(problems))


async def _metadata(settings: AgentSettings) -> list[str]:
    try:
        await own_name(settings)
    except (RefusedError, ProtocolError):
        # An agent whose file has its name needs only the events.
        if settings.resource is None or await knows_instances(settings):
            raise
        await look_for_events(settings)
    return []


async def _state(state: Path) -> list[str]:
    """The agent makes the directory, so this checks whether it could."""
    place = state
    while not place.exists() and place != place.parent:
        place = place.parent
    return _writable(place)


async def _shared(path: Path) -> list[str]:
    return _writable(path)


async def _leases(settings: KubernetesReadiness) -> list[str]:
    # Of no event: whether leases can be read at all is what is asked.
    await open_readiness(settings, endpoint=lambda: None).reports("check")
    return []


async def _served(settings: AgentSettings) -> list[str]:
    # Its library takes its time, and most files have no use for it.
    from forewarned.agent.readiness.server import ServerReports

    endpoint = await found_endpoint(settings)
    await ServerReports(lambda: endpoint).check()
    return []


def _writable(place: Path) -> list[str]:
    if not place.is_dir():
        return [f"{place} is not a directory"]
    if not os.access(place, os.W_OK | os.X_OK):
        return [f"{place} can't be written by this user"]
    return []
