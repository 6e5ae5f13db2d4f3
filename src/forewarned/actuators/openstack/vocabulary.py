"""What the OpenStack driver can be told to do, and what that does to a VM."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from forewarned.actuators.driver import Effect


class Word(StrEnum):
    LIVE_MIGRATE = "live-migrate"
    """Move it to another host while it runs. Nova chooses the host."""
    COLD_MOVE = "cold-move"
    """Stop it, start it on another host, and confirm that to Nova."""
    SOFT_REBOOT = "soft-reboot"
    """Ask the guest to reboot. Nova resets it if it does not, after a time of Nova's."""
    HARD_REBOOT = "hard-reboot"
    """Switch it off and on again."""
    STOP = "stop"
    """Ask the guest to shut down. Nova switches it off if it does not."""
    DELETE = "delete"
    """Delete it, with whatever Nova deletes along with it."""


EFFECTS: Final[Mapping[str, Effect]] = {
    Word.LIVE_MIGRATE: Effect.MOVES,
    Word.COLD_MOVE: Effect.MOVES,
    Word.SOFT_REBOOT: Effect.RESTARTS,
    Word.HARD_REBOOT: Effect.RESTARTS,
    Word.STOP: Effect.STOPS,
    Word.DELETE: Effect.REMOVES,
}
