"""Calls of hooks, as the agent makes them: each names only what matters to the test at hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import msgspec

from forewarned.agent.hooks.kinds import KINDS, HookTable
from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.hooks.retries import RetryingHook
from forewarned.agent.model import HookOutcome, Phase, Sighting
from tests.builders import MINUTE, NOON

EVENT: Final = "0000000A-0000-4000-8000-000000000000"
OTHER_EVENT: Final = "0000000B-0000-4000-8000-000000000000"
ME: Final = "web_0"


def a_sighting(event_id: str = EVENT, description: str = "Host server is rebooted.") -> Sighting:
    return Sighting(
        event_id=event_id,
        type="Reboot",
        source="Platform",
        resources=("web_0", "web_1"),
        not_before=NOON + 15 * MINUTE,
        duration=timedelta(seconds=9),
        description=description,
    )


@dataclass(slots=True)
class Told:
    """What a hook has kept and told while it ran."""

    notes: dict[str, str] = field(default_factory=dict)
    waits_for: list[str] = field(default_factory=list)


def a_call(
    phase: Phase = Phase.PREPARE,
    *,
    limit: timedelta = MINUTE,
    sighting: Sighting | None = None,
    notes: Mapping[str, str] | None = None,
    told: Told | None = None,
) -> Call:
    listener = told or Told()
    return Call(
        sighting=sighting or a_sighting(),
        me=ME,
        step="hook",
        phase=phase,
        limit=limit,
        time_left=10 * MINUTE,
        notes=notes or {},
        now=NOON + 5 * MINUTE,
        save_notes=listener.notes.update,
        waiting_for=listener.waits_for.append,
    )


# Any: a table of the agent's file.
def settings_of(kind: str, **table: Any) -> HookTable:
    """As the agent reads them from its file, checks included."""
    made: HookTable = msgspec.convert(table, KINDS[kind], builtin_types=(timedelta,))
    return made


def a_hook(kind: str, **table: Any) -> Hook:
    return RetryingHook(settings_of(kind, **table))


async def undone(hook: Hook, outcome: HookOutcome, call: Call | None = None) -> HookOutcome:
    """Undo what has come to an end, by the notes in its outcome."""
    call = call or a_call()
    return await hook.undo(replace(call, phase=Phase.UNDO, notes=outcome.notes))
