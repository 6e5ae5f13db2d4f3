"""A PostgreSQL server and its nodes in network namespaces, with a cable from each node that can be
taken down. Needs root.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from tests.end_to_end.namespaces import ip


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCable:
    """Between one node's namespace and the server's."""

    namespace: str
    """The node's."""
    node: str
    """The node's address at this cable."""
    server: str
    """The server's address at this cable: no other node reaches it there."""
    _end: str
    _server_namespace: str

    def cut(self) -> None:
        """Packets vanish without a word, as in a network that has failed."""
        ip("-n", self._server_namespace, "link", "set", self._end, "down")

    def mend(self) -> None:
        ip("-n", self._server_namespace, "link", "set", self._end, "up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    server: str
    """The namespace of the server, which has to listen at every address there is."""
    nodes: tuple[NodeCable, ...]


@contextlib.contextmanager
def partitions(nodes: int, *, are_neighbours: bool = False) -> Iterator[Partitions]:
    """Neighbours share a namespace, so that one VM reaches them all; each has its own cable."""
    # Names of their own, so that two runs of the tests don't meet.
    mark = f"fw{os.getpid()}"
    server = f"{mark}-pg"
    with contextlib.ExitStack() as stack:
        _add(stack, server)
        cables = []
        for number in range(nodes):
            name, end = f"{mark}-node{0 if are_neighbours else number}", f"node{number}"
            if not (are_neighbours and number):
                _add(stack, name)
            plug = f"pg{number}"
            peer = ("peer", "name", plug, "netns", name)
            ip("-n", server, "link", "add", end, "type", "veth", *peer)
            _give(server, end, f"10.78.{number}.1/24")
            _give(name, plug, f"10.78.{number}.2/24")
            cables.append(
                NodeCable(
                    namespace=name,
                    node=f"10.78.{number}.2",
                    server=f"10.78.{number}.1",
                    _end=end,
                    _server_namespace=server,
                )
            )
        yield Partitions(server=server, nodes=tuple(cables))


def _add(stack: contextlib.ExitStack, namespace: str) -> None:
    ip("netns", "add", namespace)
    stack.callback(ip, "netns", "del", namespace)
    ip("-n", namespace, "link", "set", "lo", "up")


def _give(namespace: str, device: str, address: str) -> None:
    ip("-n", namespace, "addr", "add", address, "dev", device)
    ip("-n", namespace, "link", "set", device, "up")
