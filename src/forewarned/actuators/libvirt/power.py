"""Switching VMs off and on, resetting and holding them."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Final

import libvirt

from forewarned.actuators.driver import DriverError, Power, RefusedError, Vm, after_effect
from forewarned.actuators.libvirt.connections.failures import is_code
from forewarned.actuators.libvirt.connections.hosts import Hosts
from forewarned.actuators.libvirt.connections.threads import in_thread
from forewarned.actuators.libvirt.search import LocatedVm, locate

_LOOKS: Final = 0.25
"""Seconds between two looks at a VM that is shutting down."""
_FORGET: Final = (
    libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
)


async def reset(located: LocatedVm) -> None:
    await located.call(lambda domain: domain.reset())


async def press_for_reboot(located: LocatedVm) -> None:
    """Press the power button, and wait until the guest has rebooted.

    libvirt tells of a reboot only while it happens. So this waits for as long as the guest takes,
    and a connection that breaks leaves it unknown.
    """
    connection = await located.host.connection()
    loop = asyncio.get_running_loop()
    rebooted = asyncio.Event()
    uuid = await located.call(lambda domain: domain.UUIDString())

    def hear(_: libvirt.virConnect, domain: libvirt.virDomain, __: None) -> None:
        if domain.UUIDString() == uuid:
            # The loop may have ended since.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(rebooted.set)

    event = libvirt.VIR_DOMAIN_EVENT_ID_REBOOT
    number = await located.host.call(
        lambda here: here.domainEventRegisterAny(None, event, hear, None)
    )
    try:
        await located.call(lambda domain: domain.reboot(libvirt.VIR_DOMAIN_REBOOT_ACPI_POWER_BTN))
        while not rebooted.is_set():
            if not connection.isAlive():
                raise DriverError(
                    f"the connection to libvirt on {located.host.name} broke while"
                    f" {located.vm.name} was about to reboot"
                )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(rebooted.wait(), timeout=_LOOKS)
    finally:
        with contextlib.suppress(libvirt.libvirtError):
            await in_thread(lambda: connection.domainEventDeregisterAny(number))


async def restart(located: LocatedVm) -> None:
    """Switch it off and on. It may be off already, left so by an actuator that died."""
    if located.instance.power is not Power.OFF:
        await destroy(located)
    with after_effect():
        await start(located)


async def start(located: LocatedVm) -> None:
    await located.call(lambda domain: domain.create())


async def hold(located: LocatedVm, duration: timedelta) -> None:
    """Let it stand still. However this ends, it runs on."""
    if located.instance.power is Power.RUNNING:
        await _suspend(located)
    try:
        await asyncio.sleep(duration.total_seconds())
    finally:
        with after_effect():
            await asyncio.shield(resume(located))


async def _suspend(located: LocatedVm) -> None:
    suspending = asyncio.ensure_future(located.call(lambda domain: domain.suspend()))
    try:
        await asyncio.shield(suspending)
    except asyncio.CancelledError:
        # The call goes on in its thread, so it can only be undone.
        await asyncio.shield(_undo(suspending, located))
        raise


async def _undo(suspending: "asyncio.Future[int]", located: LocatedVm) -> None:
    with contextlib.suppress(DriverError):
        await suspending
        await resume(located)


async def resume(located: LocatedVm) -> None:
    await located.call(lambda domain: domain.resume())


async def shut_down(hosts: Hosts, located: LocatedVm) -> None:
    """Press the power button, and wait until it is off, however long the guest takes."""
    await located.call(lambda domain: domain.shutdown())
    with after_effect():
        # libvirt's event could be missed while a connection breaks; a look can't.
        while not await _is_off(hosts, located.vm):  # noqa: ASYNC110
            await asyncio.sleep(_LOOKS)


async def destroy(located: LocatedVm) -> None:
    if located.instance.power is Power.OFF:
        return
    # It may have shut down by itself meanwhile, and a transient VM is gone then.
    with contextlib.suppress(RefusedError):
        await located.call(lambda domain: domain.destroy())


async def undefine(located: LocatedVm) -> None:
    def forget(domain: libvirt.virDomain) -> None:
        try:
            domain.undefineFlags(_FORGET)
        except libvirt.libvirtError as error:
            # The libvirt for tests knows no such flags.
            if not is_code(error, libvirt.VIR_ERR_INVALID_ARG):
                raise
            domain.undefine()

    await destroy(located)
    if located.instance.is_persistent:
        with after_effect():
            await located.call(forget)


async def _is_off(hosts: Hosts, vm: Vm) -> bool:
    seen = await locate(hosts, vm)
    return seen is None or seen.instance.power is Power.OFF
