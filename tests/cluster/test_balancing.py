"""examples/several-nodes/balance, on a hypervisor whose VMs are at 169.254.169.254 with two nodes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO, Any, Final

import pytest

from tests.cluster import requests
from tests.cluster.nodes import Node, PreloadedNode, fleet_of
from tests.cluster.waiting import wait_until
from tests.end_to_end.namespaces import METADATA, Network, inside, network_at, within
from tests.packages import need
from tests.postgresql.partitions import NodeCable, partitions
from tests.postgresql.servers import PostgresServer, private_folder

DATABASE: Final = "forewarned"
SCRIPT: Final = Path(__file__).resolve().parents[2] / "examples" / "several-nodes" / "balance"
COUNT: Final = 8
_FORWARD: Final = "echo 1 > /proc/sys/net/ipv4/ip_forward"

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
    pytest.mark.skipif(
        os.geteuid() != 0 and os.environ.get("CI") != "true",
        reason="NOT TESTED: a hypervisor in a network namespace, which only root may make",
    ),
]


@dataclass(slots=True, kw_only=True)
class Site:
    """A hypervisor, beside which the database is, with VMs on one side and nodes on the other."""

    vms: Network
    cables: tuple[NodeCable, ...]
    nodes: Sequence[Node]
    database_port: int
    seen: dict[int, int] = field(default_factory=dict)
    """The highest incarnation that each VM has read."""

    def run(self, *words: str) -> str:
        """A command on the hypervisor."""
        done = subprocess.run(
            [*inside(self.vms.host), *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def balance(self) -> str:
        return self.run(str(SCRIPT), "--once", *(cable.node for cable in self.cables))

    @contextmanager
    def balancing(self) -> Iterator[IO[str]]:
        """The script as its unit runs it, until the end of the block. What it says."""
        with subprocess.Popen(
            [*inside(self.vms.host), str(SCRIPT), *(cable.node for cable in self.cables)],
            stdout=subprocess.PIPE,
            text=True,
            # A group of its own, which the program that it pauses with belongs to as well.
            start_new_session=True,
        ) as running:
            assert running.stdout is not None
            try:
                yield running.stdout
            finally:
                os.killpg(running.pid, signal.SIGTERM)

    def events(self, vm: int) -> list[str]:
        """Ids of the events that a VM reads. Raises OSError if no node answers."""
        document = within(self.vms.vms[vm], _read)
        assert document["DocumentIncarnation"] >= self.seen.get(vm, 0)
        self.seen[vm] = document["DocumentIncarnation"]
        return [event["EventId"] for event in document["Events"]]

    def unserved(self) -> set[int]:
        """The VMs that get no answer."""
        found = set()
        for vm in range(COUNT):
            try:
                self.events(vm)
            except (OSError, HTTPException):
                found.add(vm)
        return found


def _read() -> dict[str, Any]:  # JSON, which the test looks into
    """As VMs do: on a busy machine a node may be late by a second, and asks them to come again."""
    until = time.monotonic() + requests.PATIENCE
    while True:
        connection = HTTPConnection(METADATA, 80, timeout=3)
        with contextlib.closing(connection):
            connection.request("GET", requests.DOCUMENT, headers={"Metadata": "true"})
            answer = connection.getresponse()
            if answer.status == 200:
                return json.loads(answer.read())  # type: ignore[no-any-return]  # it is JSON
            assert answer.status == 503, answer.status
            assert time.monotonic() < until, "still 503"


@contextmanager
def _site(folder: Path) -> Iterator[Site]:
    fleet = folder / "fleet.toml"
    fleet.write_text(fleet_of({f"vm-{n}": Network.address(n) for n in range(COUNT)}))
    with ExitStack() as stack:
        made = stack.enter_context(partitions(2))
        vms = stack.enter_context(network_at(made.server, COUNT))
        subprocess.run([*inside(made.server), "sh", "-c", _FORWARD], check=True)
        place = stack.enter_context(private_folder())
        server = PostgresServer(place, host="*", prefix=tuple(inside(made.server)))
        stack.enter_context(server)
        server.ask(f"CREATE DATABASE {DATABASE}")
        nodes = []
        for cable, name in zip(made.nodes, "ab", strict=True):
            # A node answers VMs through the hypervisor that they came through.
            way = ("route", "add", "10.77.0.0/24", "via", cable.server)
            subprocess.run(["ip", "-n", cable.namespace, *way], check=True)
            node = PreloadedNode(
                name=name,
                store=f"postgresql://postgres@{cable.server}:{server.port}/{DATABASE}",
                folder=folder / name,
                namespace=cable.namespace,
                metadata=f"{cable.node}:80",
                flags=("--workers=0", f"--fleet={fleet}"),
            )
            stack.callback(node.stop)
            node.begin()
            nodes.append(node)
        for node in nodes:
            node.wait_until_ready()
        yield Site(vms=vms, cables=made.nodes, nodes=nodes, database_port=server.port)


def test_vms_keep_their_addresses_and_leave_only_a_node_that_does_not_serve(
    tmp_path: Path,
) -> None:
    """S2, I7, I24."""
    need("nft")
    need("curl")
    with _site(tmp_path) as site:
        both = site.balance()
        first_read = site.unserved()
        one = site.nodes[0]
        made = within(site.cables[0].namespace, lambda: requests.schedule(one, "vm-3"))
        event_id = made.json["events"][0]["event_id"]
        wait_until(lambda: site.events(3) == [event_id])
        read = [site.events(vm) for vm in range(COUNT)]

        site.run(
            "nft", "add table ip test; add chain ip test in { type filter hook input priority 0; }"
        )
        site.run("nft", f"add rule ip test in iifname node1 tcp dport {site.database_port} drop")
        wait_until(lambda: site.balance() == _going_to(site.cables[0]))
        without_stale = site.unserved()
        site.run("nft", "delete table ip test")
        wait_until(lambda: site.balance() == both)

        one.kill()
        of_one, again = site.unserved(), site.unserved()
        said = site.balance()
        without_killed = site.unserved()

        with site.balancing() as told:
            found = told.readline()
            one.start()
            noticed = told.readline()
        after_its_end = site.unserved()

    assert both == _going_to(*site.cables)
    assert first_read == without_stale == without_killed == set()
    assert read == [[event_id] if vm == 3 else [] for vm in range(COUNT)]
    assert of_one == again
    assert 0 < len(of_one) < COUNT
    assert said == found == _going_to(site.cables[1])
    assert noticed == both
    assert after_its_end == set()


def _going_to(*cables: NodeCable) -> str:
    return f"VMs go to: {' '.join(cable.node for cable in cables)}\n"
