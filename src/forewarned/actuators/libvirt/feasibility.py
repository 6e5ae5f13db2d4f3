"""Why a VM can't be treated in a certain way, as far as its definition shows. Pure."""

from typing import Final

from forewarned.actuators.driver import Power
from forewarned.actuators.libvirt.definition import Definition
from forewarned.actuators.libvirt.vocabulary import Word

TRANSIENT: Final = (
    "transient, so libvirt would forget it when it stops: make it persistent with `virsh define`"
)


def objection(
    word: Word, definition: Definition, *, power: Power, is_persistent: bool
) -> str | None:
    """None if there is none."""
    match word:
        case Word.LIVE_MIGRATE if power is not Power.RUNNING:
            return f"its state is {power}, and only a running VM can be migrated live"
        case Word.LIVE_MIGRATE if definition.host_devices:
            return "it uses devices of its host (passthrough), so it can't be migrated live"
        case Word.ACPI if definition.on_reboot != "restart":
            return (
                f"its on_reboot is {definition.on_reboot}, so it would not come back after a"
                " reboot: set on_reboot to restart"
            )
        case Word.ACPI | Word.RESET | Word.HOLD | Word.SHUTDOWN if power is not Power.RUNNING:
            return f"its state is {power}"
        case Word.RESTART | Word.COLD_MOVE if not is_persistent:
            return f"it is {TRANSIENT}"
    return None


def describe_shortage(*, free: int, needed: int) -> str | None:
    """None if there is enough memory, or libvirt can't tell: it says 0 then."""
    if free == 0 or free >= needed:
        return None
    return f"only {free >> 20} MiB of memory is free, and the VM needs {needed >> 20} MiB"
