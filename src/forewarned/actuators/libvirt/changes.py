"""Waiting until libvirt tells of a VM that came, went, started, stopped or was moved."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import libvirt

from forewarned.actuators.driver import DriverError, TryLaterError
from forewarned.actuators.libvirt.connections.hosts import Host
from forewarned.actuators.libvirt.connections.threads import in_thread

_SETTLING: Final = 1.0
"""Seconds: a VM that is started or moved makes several events, on two hosts."""


async def until_changed(hosts: Sequence[Host]) -> None:
    """Raises DriverError if no host can tell of changes."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()

    def hear() -> None:
        # In libvirt's thread; the loop may have ended since.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(heard.set)

    async with contextlib.AsyncExitStack() as listening:
        count = 0
        for host in hosts:
            # One that does not answer is listed again soon, and then says why.
            with contextlib.suppress(DriverError):
                await listening.enter_async_context(_told_of_changes(host, hear))
                count += 1
        if not count:
            raise TryLaterError("no host reports changes")
        await heard.wait()
    await asyncio.sleep(_SETTLING)


@contextlib.asynccontextmanager
async def _told_of_changes(host: Host, hear: Callable[[], None]) -> AsyncIterator[None]:
    def hear_change(
        _: libvirt.virConnect, __: libvirt.virDomain, event: int, detail: int, ___: None
    ) -> None:
        del event, detail
        hear()

    connection = await host.connection()
    number = await host.call(
        lambda here: here.domainEventRegisterAny(
            None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, hear_change, None
        )
    )
    try:
        yield
    finally:
        with contextlib.suppress(libvirt.libvirtError):
            await in_thread(lambda: connection.domainEventDeregisterAny(number))
