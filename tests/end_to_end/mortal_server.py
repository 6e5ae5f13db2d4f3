"""A server that is killed, and started again on what it has stored."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.end_to_end.server_process import ready, start


class MortalServer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._start()

    def kill(self) -> None:
        """Returns when it has been started again, at other ports."""
        self._end(signal.SIGKILL)
        self._start()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _start(self) -> None:
        self._process = start(self._folder)
        self.server = ready(self._process, self._folder)

    def _end(self, how: signal.Signals) -> None:
        with self._process:
            self._process.send_signal(how)


@contextlib.contextmanager
def mortal_server(folder: Path) -> Iterator[MortalServer]:
    running = MortalServer(folder)
    try:
        yield running
    finally:
        running.stop()
