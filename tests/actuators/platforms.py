"""A platform in memory, which outlives the actuators that act on it, and a driver for it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, assert_never

from forewarned.actuators.driver import (
    Action,
    DriverError,
    Effect,
    Power,
    Progress,
    RefusedError,
    Sighting,
    Verdict,
    Vm,
)

_VM: Final = "web-0"


class KilledError(BaseException):
    """Stands for kill -9: nothing in the actuator may answer it."""


def nothing(_: str) -> None:
    pass


@dataclass(kw_only=True)
class Platform:
    """Two hosts, and one VM."""

    host: str = "hv-a"
    power: Power = Power.RUNNING
    boots: int = 1
    intent: str = ""
    issued: bool = False
    job: str = ""
    has_witness: bool = True
    """Whether it shows each boot."""
    sees_vms: bool = True
    can: bool = True
    says: str = "half of it is done"
    """While it acts."""
    actions: list[str] = field(default_factory=list)
    """Every action that had an effect."""
    surveyed: list[Action] = field(default_factory=list)
    acted: list[Action] = field(default_factory=list)
    """As the driver was asked for them."""
    failures: list[DriverError] = field(default_factory=list)
    """What the next actions end with; they have no effect."""
    aborted: list[str] = field(default_factory=list)

    def carry_out(self, effect: Effect, key: str) -> None:
        self.actions.append(key)
        match effect:
            case Effect.MOVES:
                self.host = "hv-b"
            case Effect.RESTARTS:
                self.boots += 1
            case Effect.HOLDS:
                self.power = Power.RUNNING
            case Effect.STOPS:
                self.power = Power.OFF
            case Effect.REMOVES:
                self.power = Power.GONE
            case other:
                assert_never(other)


Happening = Callable[[], Awaitable[None]]


async def uneventful() -> None:
    await asyncio.sleep(0)


class PlatformDriver:
    """`step` is called before and after everything that the platform is asked.

    The others happen while it is asked that.
    """

    def __init__(
        self,
        platform: Platform,
        step: Callable[[str], None] = nothing,
        *,
        surveyed: Happening = uneventful,
        looked_at: Happening = uneventful,
        marked: Happening = uneventful,
        acted_on: Happening = uneventful,
        aborted: Happening = uneventful,
    ) -> None:
        self._platform = platform
        self._step = step
        self._surveyed = surveyed
        self._looked_at = looked_at
        self._marked = marked
        self._acted_on = acted_on
        self._aborted = aborted

    async def survey(self, action: Action, vm: Vm) -> Verdict:
        _refuse_unknown(vm)
        self._platform.surveyed.append(action)
        await self._surveyed()
        if not self._platform.can:
            return Verdict(possible=False, reason="no host has room")
        target = "hv-b" if action.effect is Effect.MOVES else None
        return Verdict(possible=True, reason=action.do, target=target)

    async def observe(self, vm: Vm) -> Sighting:
        self._step("observe")
        await self._looked_at()
        at = self._platform
        if vm.name != _VM:
            return Sighting(power=Power.GONE)
        return Sighting(
            host=at.host if at.sees_vms else None,
            power=at.power if at.sees_vms else Power.UNKNOWN,
            witness=f"boot {at.boots}" if at.has_witness else "",
            conclusive=at.has_witness,
            intent=at.intent,
            issued=at.issued,
            job=at.job,
        )

    async def mark(self, vm: Vm, key: str) -> None:
        _refuse_unknown(vm)
        self._step("before mark")
        self._platform.intent, self._platform.issued = key, False
        await self._marked()
        self._step("after mark")

    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        _refuse_unknown(vm)
        self._step("before act")
        self._platform.acted.append(action)
        progress(self._platform.says)
        await self._acted_on()
        if self._platform.failures:
            raise self._platform.failures.pop(0)
        self._platform.carry_out(action.effect, key)
        self._step("after act")
        self._platform.issued = self._platform.intent == key
        self._step("after issued")

    async def abort(self, vm: Vm, key: str) -> None:
        _refuse_unknown(vm)
        self._platform.aborted.append(key)
        await self._aborted()
        self._platform.job = ""


def _refuse_unknown(vm: Vm) -> None:
    if vm.name != _VM:
        raise RefusedError(f"the platform has no VM {vm.name}")
