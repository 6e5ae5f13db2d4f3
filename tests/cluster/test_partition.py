"""One node loses its way to the database. The other does not."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, PreloadedNode, fleet_of
from tests.cluster.waiting import wait_until
from tests.end_to_end.namespaces import inside, within
from tests.postgresql.partitions import NodeCable, partitions
from tests.postgresql.servers import PostgresServer, private_folder

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
    """I7, I14, I24."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(fleet_of(VMS))
    with (
        partitions(2) as made,
        private_folder() as folder,
        PostgresServer(folder, host="*", prefix=tuple(inside(made.server))) as server,
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

        def at(cable: NodeCable, ask: Callable[[], requests.Response]) -> requests.Response:
            return within(cable.namespace, ask)

        with (
            a_node(other_cable, "b", f"--fleet={fleet}") as other,
            a_node(cable, "a") as node,
        ):

            def polled(address: str = REGULAR) -> requests.Response:
                return at(cable, lambda: requests.poll(node, address=address))

            def approved() -> requests.Response:
                return at(cable, lambda: requests.approve(node, event_id, address=REGULAR))

            polled()
            made_event = at(other_cable, lambda: requests.schedule(other, "vm-0"))
            event_id = made_event.json["events"][0]["event_id"]
            wait_until(lambda: event_id in requests.events_of(polled()))

            cable.cut()
            wait_until(lambda: polled(NEWCOMER).status == 503, within=20)
            stale, refused = polled(), approved()
            elsewhere = at(
                other_cable, lambda: requests.approve_patiently(other, event_id, address=REGULAR)
            )
            still = polled()
            cable.mend()
            wait_until(lambda: _status(polled()) == "Started", within=20)
            healed = polled(NEWCOMER), approved()

    assert requests.events_of(stale) == requests.events_of(still) == [event_id]
    assert _status(still) == "Scheduled"
    assert refused.status == 503
    assert elsewhere.status == 200
    assert [answer.status for answer in healed] == [200, 200]


def _status(shown: requests.Response) -> str:
    assert shown.status == 200, shown
    return str(shown.json["Events"][0]["EventStatus"])
