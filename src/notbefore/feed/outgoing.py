"""Frames on their way out: those of one turn of the event loop are sent in one go.

Each call to the system wakes the process at the other end, and on a busy machine that costs more
than a frame does. Approvals come by the dozen, and so do their answers.
"""

import asyncio
from collections.abc import Callable


class Outgoing:
    """The rule that must stay true: frames leave in the order in which they were written."""

    def __init__(
        self, transport: asyncio.Transport, *, most: int, overflow: Callable[[], None]
    ) -> None:
        """`overflow` is called where the other end has left more than `most` bytes unread."""
        self._transport = transport
        self._most = most
        self._overflow = overflow
        self._frames: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def write(self, framed: bytes) -> None:
        if not self._frames:
            self._loop.call_soon(self.flush)
        self._frames.append(framed)

    def flush(self) -> None:
        """Send what was written. Once the connection is gone there is nobody to send it to."""
        frames, self._frames = self._frames, []
        if not frames or self._transport.is_closing():
            return
        self._transport.write(b"".join(frames))
        if self._transport.get_write_buffer_size() > self._most:
            self._overflow()
