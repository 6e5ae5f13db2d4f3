"""What the libvirt driver can be told to do, and what that does to a VM. Needs no libvirt."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from forewarned.actuators.driver import Effect


class Word(StrEnum):
    LIVE_MIGRATE = "live-migrate"
    """Move it to another host while it runs."""
    COLD_MOVE = "cold-move"
    """Stop it, and start it on another host."""
    ACPI = "acpi"
    """Press its power button, so that the guest reboots by itself."""
    RESET = "reset"
    """Press its reset button."""
    RESTART = "restart"
    """Switch it off and on again."""
    HOLD = "hold"
    """Let it stand still for as long as the event says."""
    SHUTDOWN = "shutdown"
    """Press its power button, so that the guest shuts down by itself."""
    DESTROY = "destroy"
    """Switch it off."""
    UNDEFINE = "undefine"
    """Switch it off, and have libvirt forget it. Its disks stay."""


EFFECTS: Final[Mapping[str, Effect]] = {
    Word.LIVE_MIGRATE: Effect.MOVES,
    Word.COLD_MOVE: Effect.MOVES,
    Word.ACPI: Effect.RESTARTS,
    Word.RESET: Effect.RESTARTS,
    Word.RESTART: Effect.RESTARTS,
    Word.HOLD: Effect.HOLDS,
    Word.SHUTDOWN: Effect.STOPS,
    Word.DESTROY: Effect.STOPS,
    Word.UNDEFINE: Effect.REMOVES,
}
