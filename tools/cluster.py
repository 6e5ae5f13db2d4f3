"""Three nodes on a PostgreSQL with a synchronous standby, on this machine, to try things with.

`make cluster` starts them, says how to use and how to break them, and ends them at Ctrl-C. While it
runs, `python -m tools.cluster COMMAND` in another terminal kills a node, or the database's primary.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.cluster.nodes import NAMES, Node
from tests.cluster.waiting import wait_until
from tests.end_to_end.server_process import environment
from tests.postgresql.servers import NoServerError, private_folder, programs
from tests.postgresql.standby import ServerPair, server_pair

ROOT: Final = Path(__file__).resolve().parent.parent
SOCKET: Final = Path(tempfile.gettempdir()) / f"forewarned-cluster-{os.geteuid()}.sock"
"""Where a running cluster is told to break: one for each user of the machine."""
DATABASE: Final = "forewarned"
FLEET: Final = ROOT / "examples" / "several-nodes" / "fleet.toml"
DOCUMENT: Final = "/metadata/scheduledevents?api-version=2020-07-01"
WEB, BATCH = "127.8.0.10", "127.8.0.11"
"""The addresses of two VMs of that fleet. The second is a Spot VM."""
COMMANDS: Final = {
    "kill NODE": "kill a node, as the death of its host would",
    "start NODE": "start it again",
    "failover": "kill the database's primary, and promote its standby",
    "rejoin": "make the old primary the new one's standby",
    "status": "say what runs",
}


class Cluster:
    def __init__(self, pair: ServerPair, nodes: dict[str, Node]) -> None:
        self._pair = pair
        self._nodes = nodes
        self._lock = threading.Lock()

    def obey(self, words: list[str]) -> str:
        """Carry a command out. Returns what to print."""
        with self._lock:
            match words:
                case ["kill", name] if name in self._nodes:
                    self._nodes[name].kill()
                    return f"killed node {name}; bring it back with: start {name}"
                case ["start", name] if name in self._nodes:
                    self._nodes[name].start()
                    return f"node {name} serves again"
                case ["failover"]:
                    self._pair.fail_over()
                    return f"the primary is at port {self._pair.primary.port} now; then: rejoin"
                case ["rejoin"]:
                    self._pair.rejoin()
                    return f"the standby is at port {self._pair.other.port}, and is waited for"
                case ["status"]:
                    return self.status()
                case _:
                    return "commands are " + ", ".join(COMMANDS)

    def status(self) -> str:
        primary, other = self._pair.primary, self._pair.other
        standby = f"its standby at port {other.port}" if other.is_running else "no standby"
        nodes = (
            f"node {node.name}      for VMs http://{node.metadata}, console http://{node.control}"
            if node.is_running
            else f"node {node.name}      does not run"
            for node in self._nodes.values()
        )
        return "\n".join([f"PostgreSQL  {primary.url(DATABASE)}, {standby}", *nodes])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description=__doc__)
    parser.add_argument("command", nargs="*", help="; ".join(COMMANDS))
    parser.add_argument("--port", type=int, default=8181, help="the first of six in a row")
    given = parser.parse_args()
    if given.command:
        return _tell(given.command)
    try:
        programs()
    except NoServerError as error:
        print(error, file=sys.stderr)
        return 1
    # Whoever ends it so means the same as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), _cluster(given.port) as introduction:
        print(introduction, flush=True)
        signal.pause()
    print("\nended")
    return 0


def _tell(words: list[str]) -> int:
    """To the cluster that runs."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(SOCKET))
        except OSError:
            print("no cluster runs: start one with `make cluster`", file=sys.stderr)
            return 1
        line.sendall(" ".join(words).encode())
        line.shutdown(socket.SHUT_WR)
        print(b"".join(iter(lambda: line.recv(4096), b"")).decode())
    return 0


@contextlib.contextmanager
def _cluster(port: int) -> Iterator[str]:
    """What to tell the person who has started it."""
    with private_folder() as folder, server_pair(folder, settings={"fsync": "on"}) as pair:
        pair.primary.ask(f"CREATE DATABASE {DATABASE}")
        # The servers' folder belongs to PostgreSQL's user, and has nothing to do with the nodes'.
        with tempfile.TemporaryDirectory(prefix="forewarned-cluster-") as name:
            nodes = _nodes(Path(name), pair.url(DATABASE), port)
            cluster = Cluster(pair, nodes)
            try:
                for node in nodes.values():
                    node.begin()
                for node in nodes.values():
                    node.wait_until_ready()
                token = _token(pair.url(DATABASE))
                # A node looks for new tokens once a second.
                for node in nodes.values():
                    wait_until(partial(_admits, node, token))
                with _listening(cluster.obey):
                    yield _introduction(cluster, nodes, token)
            finally:
                for node in nodes.values():
                    node.stop()


def _nodes(folder: Path, store: str, port: int) -> dict[str, Node]:
    """Ready to be started."""
    return {
        name: Node(
            name=name,
            store=store,
            folder=folder / name,
            flags=("--control-access=token", f"--fleet={FLEET}"),
            metadata=f"127.0.0.1:{port + number}",
            control=f"127.0.0.1:{port + len(NAMES) + number}",
        )
        for number, name in enumerate(NAMES)
    }


def _token(store: str) -> str:
    """For the control listeners of all nodes, which have made the tables by now."""
    create = ("token", "create", "me", "--role=admin", f"--store={store}")
    made = subprocess.run(
        [sys.executable, "-m", "forewarned", *create],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


def _admits(node: Node, token: str) -> bool:
    asked = Request(f"http://{node.control}/v1/clock", headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(asked):
            return True
    except HTTPError:
        return False


@contextlib.contextmanager
def _listening(obey: Callable[[list[str]], str]) -> Iterator[None]:
    SOCKET.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(SOCKET))
        SOCKET.chmod(0o600)
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line:
                    line.sendall(_answer(obey, line.makefile().read().split()).encode())

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield
        finally:
            SOCKET.unlink(missing_ok=True)


def _answer(obey: Callable[[list[str]], str], words: list[str]) -> str:
    try:
        return obey(words)
    except AssertionError as error:
        return str(error)


def _introduction(cluster: Cluster, nodes: dict[str, Node], token: str) -> str:
    """With the tour of docs/several-nodes.md."""
    a, b, c = nodes.values()
    folder = os.path.relpath(Path(sys.prefix) / "bin")
    command = f"  {folder}/forewarned"
    told = "\n".join(
        f"  {folder}/python -m tools.cluster {words:<12} # {meaning}"
        for words, meaning in COMMANDS.items()
    )
    return f"""{cluster.status()}
logs        {a.folder.parent}/*/log

The tour, in another terminal. Commands talk to node {a.name}:
  export FOREWARNED_TOKEN={token} FOREWARNED_CONTROL={a.control}
Sign in with that token to the console of node {c.name}, which shows each step at once: http://{c.control}/
The VM web reads its document, and gets notice of events from now on:
{_read(a, WEB)}
Restart it, and approve that, as the VM does when it is ready. The restart starts:
{command} schedule reboot --vm web
{command} approve
{_read(a, WEB)}
Nodes run in real time, so their clock can't be moved. Say that the restart is over.
Any node has the same document:
{command} complete
{_read(b, WEB)}
Without an approval an event starts at its NotBefore. A Spot VM gets 30 seconds' notice:
{_read(a, BATCH)}
{command} schedule preempt --vm batch
{command} wait --for started

Break it meanwhile:
{told}
Ctrl-C ends all."""


def _read(node: Node, vm: str) -> str:
    """The command that reads a VM's document at a node."""
    return f"  curl -s --interface {vm} -H Metadata:true 'http://{node.metadata}{DOCUMENT}'; echo"


if __name__ == "__main__":
    sys.exit(main())
