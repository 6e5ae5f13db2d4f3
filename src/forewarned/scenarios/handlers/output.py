"""What a handler prints, line by line, up to a limit.

Invariant: it is always read on, if slowly, so that a handler that prints too much is not stopped
by a full pipe, and does not fill the memory or a processor of the examination.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Final

MOST: Final = 256 * 1024
"""Bytes of one handler that are kept."""
LONGEST_LINE: Final = 2000
"""Characters. What is longer is cut."""
_PIECE: Final = 64 * 1024
_REST: Final = 0.02
"""Seconds between reads of what is no longer passed on."""


class Output:
    """Reads a descriptor until its end, and closes it."""

    def __init__(self, descriptor: int, tell: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._kept = 0
        self._line = b""
        self._is_open = True

    def begin(self) -> None:
        os.set_blocking(self._descriptor, False)
        self._loop.add_reader(self._descriptor, self._read)

    def take_rest(self) -> None:
        """Tell what has been printed so far, and read on no more."""
        while self._is_open and self._kept <= MOST:
            try:
                piece = os.read(self._descriptor, _PIECE)
            except BlockingIOError:
                break
            if not piece:
                break
            self._take(piece)
        self._close()

    def _read(self) -> None:
        try:
            piece = os.read(self._descriptor, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            self._close()
            return
        self._take(piece)
        if self._kept > MOST:
            self._loop.remove_reader(self._descriptor)
            self._timer = self._loop.call_later(_REST, self._read_on)

    def _read_on(self) -> None:
        self._loop.add_reader(self._descriptor, self._read)

    def _take(self, piece: bytes) -> None:
        if self._kept > MOST:
            return
        self._kept += len(piece)
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            self._say(line)
        if len(self._line) > LONGEST_LINE:
            self._say(self._line)
            self._line = b""
        if self._kept > MOST:
            self._line = b""
            self._tell(f"(more than {MOST // 1024} KiB: what it prints from here on is not kept)")

    def _say(self, line: bytes) -> None:
        self._tell(line.decode(errors="replace").rstrip("\r")[:LONGEST_LINE])

    def _close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._line:
            self._say(self._line)
        self._loop.remove_reader(self._descriptor)
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._descriptor)
