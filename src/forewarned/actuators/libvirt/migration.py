"""Moving VMs between hosts.

Invariant: the source's libvirt does it, connected to the target's. So a migration that has begun
comes to its end when the actuator dies, and a VM is never left paused between two hosts.
"""

import asyncio
import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import libvirt

from forewarned.actuators.driver import (
    Action,
    DriverError,
    Power,
    Progress,
    RefusedError,
    after_effect,
)
from forewarned.actuators.libvirt.connections.hosts import Host, Hosts
from forewarned.actuators.libvirt.definition import Definition, parse_definition
from forewarned.actuators.libvirt.feasibility import describe_shortage
from forewarned.actuators.libvirt.search import LocatedVm, locate
from forewarned.core.ids import same_name

_PROGRESS: Final = 1.0
"""Seconds between two reports of it."""
_KEPT: Final = libvirt.VIR_MIGRATE_PERSIST_DEST | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
"""One host has the VM's definition: the one it is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """How hosts reach each other. `{target}` stands for the name of the host to move to."""

    peer: str
    """The URI at which libvirt on one host reaches that of another."""
    memory: str | None = None
    """The URI at which a host receives VMs' memory; None leaves it to libvirt."""

    def to(self, target: Host) -> tuple[str, dict[str, str]]:
        peer = self.peer.replace("{target}", target.name)
        if self.memory is None:
            return peer, {}
        return peer, {libvirt.VIR_MIGRATE_PARAM_URI: self.memory.replace("{target}", target.name)}


class NoTargetError(RefusedError):
    def __init__(self, reasons: list[str]) -> None:
        because = "; ".join(reasons) or (
            "the settings name no other host to move it to: add one to targets"
        )
        super().__init__(f"no host can take the VM: {because}")


class Migration:
    def __init__(self, hosts: Hosts, routes: Routes) -> None:
        self._hosts = hosts
        self._routes = routes

    async def target_of(self, located: LocatedVm, action: Action) -> Host:
        """Another host with room for the VM: the one it has to go to, or the one with the most.

        Invariant: no VM is moved to a host that is cordoned. Raises NoTargetError.
        """
        definition = await definition_of(located)
        wanted = self._hosts.targets
        if action.target is not None:
            wanted = (self._hosts.host(action.target),)
        candidates = [host for host in wanted if host is not located.host]
        rooms = await asyncio.gather(
            *(_room(host, definition, action.cordoned) for host in candidates)
        )
        fitting = [
            (room, host)
            for room, host in zip(rooms, candidates, strict=True)
            if isinstance(room, int)
        ]
        if not fitting:
            raise NoTargetError([room for room in rooms if isinstance(room, str)])
        return max(fitting, key=lambda each: each[0])[1]

    async def live(self, located: LocatedVm, action: Action, progress: Progress) -> None:
        """Raises RefusedError if the VM was seen to run on its source afterwards."""
        target = await self.target_of(located, action)
        kept = _KEPT if located.instance.is_persistent else 0
        flags = libvirt.VIR_MIGRATE_LIVE | libvirt.VIR_MIGRATE_AUTO_CONVERGE | kept
        moving = asyncio.create_task(self._migrate(located, target, flags))
        try:
            while not (await asyncio.wait({moving}, timeout=_PROGRESS))[0]:
                await self._report(located, target, progress)
            await moving
        except DriverError as error:
            with after_effect():
                seen = await locate(self._hosts, located.vm)
            if seen is not None and _is_unmoved(seen, located):
                raise RefusedError(str(error)) from error
            raise DriverError(str(error)) from error
        finally:
            moving.cancel()

    async def _report(self, located: LocatedVm, target: Host, progress: Progress) -> None:
        # A migration goes on whether or not it can be looked at.
        with contextlib.suppress(DriverError):
            seen = await locate(self._hosts, located.vm)
            if seen is not None and seen.job:
                progress(f"to {target.name}: {seen.job}")

    async def offline(self, located: LocatedVm, action: Action) -> LocatedVm:
        """Move the definition of a VM that is off. Returns the VM where it is then."""
        target = await self.target_of(located, action)
        await self._migrate(located, target, libvirt.VIR_MIGRATE_OFFLINE | _KEPT)
        moved = await locate(self._hosts, located.vm)
        if moved is None or moved.host is not target:
            raise DriverError(
                f"libvirt reported no error, but {located.vm.name} is not on {target.name}"
            )
        return moved

    async def _migrate(self, located: LocatedVm, target: Host, flags: int) -> None:
        peer, parameters = self._routes.to(target)
        flags |= libvirt.VIR_MIGRATE_PEER2PEER
        await located.call(lambda domain: domain.migrateToURI3(peer, parameters, flags))


async def definition_of(located: LocatedVm) -> Definition:
    return parse_definition(await located.call(lambda domain: domain.XMLDesc()))


async def _room(host: Host, definition: Definition, cordoned: Collection[str]) -> int | str:
    """Bytes of memory that are free there, or why it can't take the VM."""
    if any(same_name(host.name, name) for name in cordoned):
        return f"{host.name} is being drained"
    try:
        free = await host.call(lambda connection: connection.getFreeMemory())
    except DriverError as error:
        return str(error)
    shortage = describe_shortage(free=free, needed=definition.memory)
    return free if shortage is None else f"{host.name}: {shortage}"


def _is_unmoved(seen: LocatedVm, located: LocatedVm) -> bool:
    runs = seen.instance.power is Power.RUNNING and not seen.job
    return runs and seen.host is located.host and seen.instance.run == located.instance.run
