"""One node loses its way to the database. The other does not."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, PreloadedNode, fleet_of
from tests.cluster.under_watch import LOAD, under_watch
from tests.cluster.waiting import wait_until
from tests.end_to_end.namespaces import inside, within
from tests.postgresql.partitions import NodeCable, partitions
from tests.postgresql.servers import DURABLE, PostgresServer, private_folder

DATABASE = "forewarned"
VMS = addresses(3)
REGULAR, NEWCOMER = VMS["vm-0"], VMS["vm-2"]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
    pytest.mark.skipif(
        os.geteuid() != 0 and os.environ.get("CI") != "true",
        reason="NOT TESTED: nodes in network namespaces, which only root may make",
    ),
]


def test_a_node_that_is_cut_off_is_stale_and_then_catches_up(tmp_path: Path) -> None:
    """I5, I7, I14, I23, I24."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(fleet_of({**VMS, **LOAD}))
    with (
        partitions(2, are_neighbours=True) as made,
        private_folder() as folder,
        PostgresServer(
            folder, host="*", prefix=tuple(inside(made.server)), settings=DURABLE
        ) as server,
    ):
        server.ask(f"CREATE DATABASE {DATABASE}")
        cable, other_cable = made.nodes

        def a_node(cable: NodeCable, name: str, *flags: str) -> Node:
            return PreloadedNode(
                name=name,
                store=f"postgresql://postgres@{cable.server}:{server.port}/{DATABASE}",
                folder=tmp_path / name,
                namespace=cable.namespace,
                flags=("--workers=0", *flags),
            )

        with (
            a_node(other_cable, "b", f"--fleet={fleet}") as other,
            a_node(cable, "a") as node,
        ):
            # VMs and clients are where the nodes are, and threads where those are that start them.
            within(cable.namespace, partial(_cut_and_mend, server, node, other, cable))


def _cut_and_mend(server: PostgresServer, node: Node, other: Node, cable: NodeCable) -> None:
    def polled(address: str = REGULAR) -> requests.Response:
        return requests.poll(node, address=address)

    regulars = {name: at for name, at in VMS.items() if at != NEWCOMER}
    with under_watch([node, other], partial(server.ask, database=DATABASE), regulars):
        polled()
        event_id = requests.schedule(other, "vm-0").json["events"][0]["event_id"]
        wait_until(lambda: event_id in requests.events_of(polled()))

        cable.cut()
        wait_until(lambda: polled(NEWCOMER).status == 503, within=20)
        stale, refused = polled(), requests.approve(node, event_id, address=REGULAR)
        elsewhere = requests.approve_patiently(other, event_id, address=REGULAR)
        still = polled()
        cable.mend()
        wait_until(lambda: _status(polled()) == "Started", within=20)
        healed = polled(NEWCOMER), requests.approve(node, event_id, address=REGULAR)

    assert requests.events_of(stale) == requests.events_of(still) == [event_id]
    assert _status(still) == "Scheduled"
    assert refused.status == 503
    assert elsewhere.status == 200
    assert [answer.status for answer in healed] == [200, 200]


def _status(shown: requests.Response) -> str:
    assert shown.status == 200, shown
    return str(shown.json["Events"][0]["EventStatus"])
