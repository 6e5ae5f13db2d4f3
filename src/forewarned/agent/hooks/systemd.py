"""Stops, starts or restarts units of systemd, through `systemctl`.

Invariant: an undo starts only units that ran when this hook stopped them, and
stops only those that this hook has started.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta
from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import UndoableTable
from forewarned.agent.model import Phase
from forewarned.targets.errors import TargetError
from forewarned.targets.programs import ProgramResult, missing, run_program

_RUNNING: Final = frozenset({"active", "activating", "reloading", "refreshing"})


class Verb(StrEnum):
    STOP = "stop"
    START = "start"
    RESTART = "restart"
    """Has no undo: the units run before and after."""


_OPPOSITE: Final = {Verb.STOP: Verb.START, Verb.START: Verb.STOP}
_DONE: Final = {Verb.STOP: "stopped", Verb.START: "started", Verb.RESTART: "restarted"}


class SystemdHook(UndoableTable, frozen=True, kw_only=True):
    """Stops, starts or restarts systemd units, and waits for them.

    Undo reverses only what it stopped or started; a restart has no undo.
    """

    units: Annotated[
        tuple[Annotated[str, Meta(pattern="^[A-Za-z0-9:_.@\\\\][A-Za-z0-9:_.@\\\\-]*$")], ...],
        Meta(min_length=1),
    ]
    """The units. They are stopped in this order, and started in reverse."""
    action: Verb = Verb.STOP
    """`stop`, `start` or `restart`."""

    @property
    @override
    def has_undo(self) -> bool:
        return self.undo and self.action is not Verb.RESTART

    @property
    @override
    def targets(self) -> frozenset[str]:
        # As systemctl completes a name without a suffix.
        whole = (unit if "." in unit else f"{unit}.service" for unit in self.units)
        return frozenset(f"unit {unit}" for unit in whole)

    @override
    async def run(self, call: Call) -> str:
        verb = self.action
        concerned = list(self.units)
        if verb is not Verb.RESTART:
            concerned = call.notes.get("changed", "").split()
            if not concerned:
                # Before anything is changed: afterwards there is no telling.
                concerned = await self._those(running=verb is Verb.STOP)
                call.save_notes({"changed": " ".join(concerned)})
        return await self._all(verb, concerned, call)

    @override
    async def put_back(self, call: Call) -> str:
        changed = call.notes.get("changed", "").split()
        return await self._all(_OPPOSITE[self.action], changed[::-1], call)

    @override
    async def check(self) -> list[str]:
        problems = missing("systemctl")
        for unit in [] if problems else self.units:
            if await _property("LoadState", unit) != "loaded":
                problems.append(f"systemd has no unit {unit}")
        return problems

    @override
    def describe(self, phase: Phase) -> str:
        units = ", ".join(self.units)
        if phase is not Phase.UNDO:
            return f"{self.action} {units}"
        verb = _OPPOSITE.get(self.action, self.action)
        return f"{verb} the units that were {_DONE[self.action]}: {units}"

    async def _those(self, *, running: bool) -> list[str]:
        states = {unit: await _property("ActiveState", unit) for unit in self.units}
        return [unit for unit, state in states.items() if (state in _RUNNING) == running]

    async def _all(self, verb: Verb, units: Sequence[str], call: Call) -> str:
        for unit in units:
            call.waiting_for(f"systemctl {verb} {unit}")
            await _systemctl(verb, "--", unit)
        return f"{verb}: {', '.join(units)}" if units else f"nothing to {verb}"


async def _property(name: str, unit: str) -> str:
    return (await _systemctl("show", f"--property={name}", "--value", "--", unit)).stdout.strip()


async def _systemctl(*arguments: str) -> ProgramResult:
    ran = await run_program(("systemctl", "--no-ask-password", *arguments))
    if ran.exit_code != 0:
        raise TargetError(f"systemctl {' '.join(arguments)} {ran.last_words}")
    return ran
