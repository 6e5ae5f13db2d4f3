"""A supervised server of several processes, each of which a test may kill."""

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.end_to_end.server_process import Server, ready, start
from tests.preloaded import Process

FLAGS: Final = ("--workers", "1", "--log-format", "json")
PATIENCE: Final = 60


@dataclass(frozen=True, slots=True)
class SupervisedServer:
    """A supervised server, and what its log says of its processes."""

    running: Process
    server: Server
    folder: Path

    def pid(self, worker: str) -> int:
        """Of the one that has that part now."""
        return self.lives(worker)[-1]

    def lives(self, worker: str) -> list[int]:
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return [
            line["pid"]
            for line in lines
            if line["message"] == "a process is ready" and line["worker"] == worker
        ]

    def kill(self, worker: str) -> None:
        """End it as nothing else could, and return at once."""
        os.kill(self.pid(worker), signal.SIGKILL)

    def healed(self, worker: str, *, after: int = 1) -> None:
        wait_until(lambda: len(self.lives(worker)) > after)

    def pids(self) -> list[int]:
        return [self.pid(worker) for worker in ("writer", "poller")]

    def log(self) -> str:
        return (self.folder / "log").read_text()


@contextlib.contextmanager
def start_supervised(
    folder: Path, vms: Mapping[str, str], *flags: str
) -> Iterator[SupervisedServer]:
    """Of VMs by name, with their addresses."""
    fleet = folder / "fleet.toml"
    fleet.write_text(
        "".join(f'[[vms]]\nname = "{name}"\naddress = "{at}"\n' for name, at in vms.items())
    )
    with start(folder, *FLAGS, "--fleet", str(fleet), *flags) as running:
        try:
            yield SupervisedServer(running, ready(running, folder), folder)
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGTERM)


def wait_until(
    holds: Callable[[], bool],
    *,
    patience: float = PATIENCE,
    pause: timedelta = timedelta(milliseconds=10),
) -> None:
    """`pause`: longer where a look costs much."""
    deadline = time.monotonic() + patience
    waiting = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        waiting.wait(pause.total_seconds())


def is_alive(pid: int) -> bool:
    """Whether a process runs: one that has ended and was not missed yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}
