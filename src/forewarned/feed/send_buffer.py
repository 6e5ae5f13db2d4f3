"""Frames on their way out: those of one turn of the event loop are sent in one go, or in two.

Each call to the system wakes the process at the other end, and on a busy machine that costs more
than a frame does. Approvals come by the dozen, and so do their answers.
"""

import asyncio
from collections.abc import Callable


class SendBuffer:
    """Invariant: frames leave in the order in which they were written."""

    def __init__(
        self, transport: asyncio.Transport, *, most: int, overflow: Callable[[], None]
    ) -> None:
        """`overflow` is called where the other end has left more than `most` bytes unread."""
        self._transport = transport
        self._most = most
        self._overflow = overflow
        self._frames: list[bytes] = []
        self._is_flush_due = False
        """Whether `_end_turn` is scheduled."""
        self._loop = asyncio.get_running_loop()

    def write(self, framed: bytes) -> None:
        """Send it at the end of this turn."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._end_turn)
        self._frames.append(framed)

    def hurry(self, framed: bytes) -> None:
        """Send it now if it is the first of this turn, and else with the others.

        For what VMs wait for: until the turn ends, others are told of the same commit, and that
        takes a while. Commits that come by the dozen still need two calls only.
        """
        is_first = not self._is_flush_due
        self.write(framed)
        if is_first:
            self.flush()

    def flush(self) -> None:
        """Send what was written. Does nothing once the connection is gone."""
        frames, self._frames = self._frames, []
        if not frames or self._transport.is_closing():
            return
        self._transport.write(b"".join(frames))
        if self._transport.get_write_buffer_size() > self._most:
            self._overflow()

    def _end_turn(self) -> None:
        self._is_flush_due = False
        self.flush()
