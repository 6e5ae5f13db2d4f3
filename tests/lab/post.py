"""What an actuator that is to be killed is told. Needs no libvirt."""

from dataclasses import dataclass

STEPS = (
    "claim",
    "observe",
    "survey",
    "mark",
    "begin",
    "act",
    "while it moves",
    "mark as issued",
    "observe again",
    "finish",
    "stop",
)
"""What is done; it may die before each of them. While it moves: as soon as libvirt has begun to move
the guest, which a reset does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where an actuator does what."""

    actuator: str
    namespace: str
    """From which it reaches the server."""
    control: str
    hosts: tuple[str, ...]
    uri: str
    peer_uri: str
