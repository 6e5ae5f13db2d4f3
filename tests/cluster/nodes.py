"""Nodes on one store: each a real server with all of its processes, to be killed and started."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Self

from typing_extensions import override

from tests import preloaded
from tests.end_to_end.server_process import Server, environment, ready
from tests.postgresql.servers import LOOPBACK, free_port
from tests.preloaded import Running

NAMES: Final = ("a", "b", "c")
_FLAGS: Final = (
    "--mode=service",
    "--arm=off",
    # On loopback a listener may be open to all, and tests of tokens are elsewhere.
    "--control-access=open",
    # VMs of a test poll as often as it likes.
    "--rate-limit=off",
    "--log-format=json",
)


@dataclass(slots=True, kw_only=True)
class Node:
    name: str
    store: str
    """The URL of the database; empty if it has its own, in its data directory."""
    folder: Path
    """Its data directory, its log and its fleet file."""
    flags: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    """Goes before the command, as `ip netns exec …` does."""
    environment: Mapping[str, str] = field(default_factory=dict)
    metadata: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port()}")
    control: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port()}")
    _running: Running | None = None
    _server: Server | None = None

    def __enter__(self) -> Self:
        self.begin()
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def server(self) -> Server:
        assert self._server is not None, f"node {self.name} does not run"
        return self._server

    @property
    def is_running(self) -> bool:
        return self._running is not None and self._running.poll() is None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def start(self) -> None:
        self.begin()
        self.wait_until_ready()

    def begin(self) -> None:
        """Return at once, so that several can start at the same time."""
        assert self._running is None, f"node {self.name} runs already"
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "log").open("a") as log:
            self._running = self._started(log)

    def _started(self, log: IO[str]) -> Running:
        given = [f"{name}={value}" for name, value in self.environment.items()]
        command = [*self.prefix, "env", *given, sys.executable, "-m", "forewarned"]
        return subprocess.Popen(
            [*command, *self._words()],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # A group of its own, that can be killed as one.
            start_new_session=True,
        )

    def _words(self) -> list[str]:
        state = [f"--data={self.folder / 'state'}"]
        if self.store:
            state.append(f"--store={self.store}")
        where = (f"--metadata={self.metadata}", f"--control={self.control}")
        return ["serve", *state, *where, *_FLAGS, *self.flags]

    def wait_until_ready(self) -> None:
        assert self._running is not None
        try:
            self._server = ready(self._running, self.folder)
        except AssertionError:
            self._reap()
            raise

    def pids(self) -> list[int]:
        """Of the supervisor, and of the writer and the poller that it has now."""
        assert self._running is not None
        return [self._running.pid, self.pid("writer"), self.pid("poller")]

    def pid(self, worker: str) -> int:
        lines = [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]
        return next(
            int(line["pid"])
            for line in reversed(lines)
            if line["message"] == "a process is ready" and line["worker"] == worker
        )

    def kill(self) -> None:
        """All of its processes at once, as a host's death does."""
        self._send(signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        """As an operator does. Does nothing if it does not run."""
        self.ask_to_stop()
        if self._running is not None:
            self._reap()

    def ask_to_stop(self) -> None:
        """Return at once, so that several can stop at the same time."""
        if self._running is None:
            return
        with contextlib.suppress(ProcessLookupError):
            # One that a test has paused would never hear of it.
            self._send(signal.SIGCONT)
        self._running.send_signal(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        assert self._running is not None, f"node {self.name} does not run"
        os.killpg(self._running.pid, number)

    def _reap(self) -> None:
        assert self._running is not None
        # It is waited for, and its output closed.
        with self._running:
            pass
        self._running = self._server = None


@dataclass(slots=True, kw_only=True)
class PreloadedNode(Node):
    """One that starts in a tenth of the time."""

    namespace: str | None = None
    """The network it is in."""

    @override
    def _started(self, log: IO[str]) -> Running:
        return preloaded.start(
            *self._words(),
            folder=self.folder,
            environment=environment(**self.environment),
            errors=log,
            namespace=self.namespace,
            leads_a_group=True,
        )


@contextlib.contextmanager
def running_nodes(
    folder: Path, store: str, *flags: str, vms: Mapping[str, str], names: tuple[str, ...] = NAMES
) -> Iterator[dict[str, Node]]:
    """Nodes by name, whose fleet has these VMs with their addresses. Each VM is a scope.

    Each is one process, unless `flags` say otherwise: two take much longer to start.
    """
    fleet = folder / "fleet.toml"
    fleet.write_text(fleet_of(vms))
    flags = ("--workers=0", *flags)
    nodes: dict[str, Node] = {
        name: PreloadedNode(name=name, store=store, folder=folder / name, flags=flags)
        for name in names
    }
    first = nodes[names[0]]
    first.flags += (f"--fleet={fleet}",)
    try:
        start_all(nodes.values())
        yield nodes
    finally:
        stop_all(nodes.values())


def start_all(nodes: Collection[Node]) -> None:
    for node in nodes:
        node.begin()
    for node in nodes:
        node.wait_until_ready()


def stop_all(nodes: Collection[Node]) -> None:
    for node in nodes:
        node.ask_to_stop()
    for node in nodes:
        node.stop()


def fleet_of(vms: Mapping[str, str]) -> str:
    """Spot VMs: a Preempt gives the shortest notice, so that some events fall due within a test."""
    return "".join(
        f'[[vms]]\nname = "{name}"\naddress = "{at}"\npriority = "Spot"\n'
        for name, at in vms.items()
    )
