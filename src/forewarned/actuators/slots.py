"""How many VMs an actuator works on at once, in total and for each host.

Invariant: never two tasks of one VM at once, because the mark of one would hide that of the other.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from msgspec import Meta, Struct

from forewarned.actuators.driver import Vm


class Limits(Struct, frozen=True, kw_only=True):
    """How many VMs an actuator acts on at once."""

    per_host: Annotated[int, Meta(ge=1)] = 2
    """How many VMs on one host it acts on at once."""
    per_target: Annotated[int, Meta(ge=1)] = 2
    """How many VMs it moves to one host at once."""
    total: Annotated[int, Meta(ge=1, le=1000)] = 8
    """How many VMs it acts on at once in all."""


class Slots:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._vms: set[str] = set()
        self._sources: Counter[str] = Counter()
        self._targets: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def vm(self, vm: Vm) -> AsyncIterator[None]:
        """Work on this VM, once there is room for it. Others don't wait behind it."""
        name, host = vm.name.casefold(), vm.host.casefold()

        def is_free() -> bool:
            return (
                name not in self._vms
                and len(self._vms) < self._limits.total
                and self._sources[host] < self._limits.per_host
            )

        async with self._changed:
            await self._changed.wait_for(is_free)
            self._vms.add(name)
            self._sources[host] += 1
        try:
            yield
        finally:
            self._vms.discard(name)
            self._sources[host] -= 1
            await self._tell()

    @asynccontextmanager
    async def target(self, host: str) -> AsyncIterator[None]:
        """Move a VM to this host. Who waits here holds up no one who is moving."""
        folded = host.casefold()
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._targets[folded] < self._limits.per_target,
            )
            self._targets[folded] += 1
        try:
            yield
        finally:
            self._targets[folded] -= 1
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
