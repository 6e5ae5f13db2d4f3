"""What libvirt's errors mean to an actuator."""

from typing import Final

import libvirt

from forewarned.actuators.driver import DriverError, RefusedError, TryLaterError

_REFUSALS: Final = frozenset(
    {
        libvirt.VIR_ERR_ARGUMENT_UNSUPPORTED,
        libvirt.VIR_ERR_CONFIG_UNSUPPORTED,
        libvirt.VIR_ERR_INVALID_ARG,
        libvirt.VIR_ERR_MIGRATE_UNSAFE,
        libvirt.VIR_ERR_NO_DOMAIN,
        libvirt.VIR_ERR_NO_SUPPORT,
        libvirt.VIR_ERR_OPERATION_DENIED,
        libvirt.VIR_ERR_OPERATION_INVALID,
        libvirt.VIR_ERR_OPERATION_UNSUPPORTED,
    }
)
"""libvirt checks these before it does anything."""


def is_code(error: libvirt.libvirtError, *codes: int) -> bool:
    return error.get_error_code() in codes


def driver_error(error: libvirt.libvirtError, *, host: str) -> DriverError:
    text = f"libvirt on {host}: {message(error)}"
    if is_code(error, *_REFUSALS):
        return RefusedError(text)
    if is_code(error, libvirt.VIR_ERR_OPERATION_TIMEOUT):
        # Another job of the VM has its lock, and this one never began.
        return TryLaterError(text)
    return DriverError(text)


def message(error: libvirt.libvirtError) -> str:
    return error.get_error_message() or str(error)
