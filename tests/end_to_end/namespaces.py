"""VMs as network namespaces, and a host whose 169.254.169.254 they all reach.

The address is never put on the machine's own loopback: it would hide what is really there.
"""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from tests.end_to_end.server_process import Server, ready, start
from tests.preloaded import enter

T = TypeVar("T")

METADATA: Final = "169.254.169.254"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    host: str
    """The namespace of the server."""
    vms: tuple[str, ...]
    """Those of the VMs, in order of their addresses."""

    @staticmethod
    def address(number: int) -> str:
        return f"10.77.0.{4 + number}"


@contextlib.contextmanager
def network(vms: int) -> Iterator[Network]:
    """Needs root. All goes away with the namespaces."""
    # Names of their own, so that two runs of the tests don't meet.
    host = f"fw{os.getpid()}-host"
    with contextlib.ExitStack() as stack:
        _add(stack, host)
        yield stack.enter_context(network_at(host, vms))


@contextlib.contextmanager
def network_at(host: str, vms: int) -> Iterator[Network]:
    """The same, at a namespace that is there already."""
    made = Network(host=host, vms=tuple(f"fw{os.getpid()}-vm{n}" for n in range(vms)))
    with contextlib.ExitStack() as stack:
        ip("-n", host, "addr", "add", f"{METADATA}/32", "dev", "lo")
        for number, name in enumerate(made.vms):
            _add(stack, name)
            _connect(made, number, name)
        yield made


def _add(stack: contextlib.ExitStack, namespace: str) -> None:
    ip("netns", "add", namespace)
    stack.callback(ip, "netns", "del", namespace)
    ip("-n", namespace, "link", "set", "lo", "up")


def _connect(made: Network, number: int, name: str) -> None:
    """A cable to each, and no bridge: no VM can answer for another's address."""
    host, cable, address = made.host, f"p{number}", made.address(number)
    ip("-n", host, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("-n", host, "link", "set", cable, "up")
    ip("-n", host, "route", "add", f"{address}/32", "dev", cable, "src", METADATA)
    ip("-n", name, "addr", "add", f"{address}/32", "dev", "eth0")
    ip("-n", name, "link", "set", "eth0", "up")
    ip("-n", name, "route", "add", f"{METADATA}/32", "dev", "eth0")


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def inside(namespace: str) -> list[str]:
    """What to put before a command."""
    return ["ip", "netns", "exec", namespace]


def within(namespace: str, call: Callable[[], T]) -> T:
    """Call it from a thread that is in the namespace, as sockets belong to where they are made."""
    found: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            enter(namespace)
            found.append(call())
        except BaseException as error:  # noqa: BLE001  # it is raised where it belongs
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return found[0]


@contextlib.contextmanager
def serving_in(namespace: str, folder: Path, *flags: str) -> Iterator[Server]:
    """A server at the metadata address of a namespace; its control is on the loopback there."""
    where = ("--metadata", f"{METADATA}:80", "--control", "127.0.0.1:8082", "--arm", "off")
    with start(folder, "--clock", "real", *where, *flags, namespace=namespace) as running:
        try:
            yield ready(running, folder)
        finally:
            running.terminate()
