"""Ids of events: GUIDs, of which those made one after another are neighbours in an index.

With ids of chance alone, approving events that were scheduled together writes twice as many pages
of the database. Invariant: ids that one server makes within three days differ in their first eight
characters, because people tell events apart by these.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from forewarned.core.ids import EventId

_TICK: Final = 16
"""Bits of nanoseconds: 66 µs. After 2**32 of them the first eight characters begin anew."""
_HEAD: Final = (1 << 32) - 1
_VERSION: Final = 0x8 << 76
"""RFC 9562 leaves this one to its maker."""
_VARIANT: Final = 0b10 << 62
_NEITHER: Final = ~(0xF << 76 | 0b11 << 62)


class EventIds:
    def __init__(self, nanoseconds: Callable[[], int], randbits: Callable[[int], int]) -> None:
        """`nanoseconds` is the machine's time: that of the server may stand still."""
        self._nanoseconds = nanoseconds
        self._randbits = randbits
        self._last = 0

    def __call__(self) -> EventId:
        self._last = max(self._last + 1, self._nanoseconds() >> _TICK)
        number = (self._last & _HEAD) << 96 | self._randbits(96)
        return EventId(str(UUID(int=number & _NEITHER | _VERSION | _VARIANT)).upper())
