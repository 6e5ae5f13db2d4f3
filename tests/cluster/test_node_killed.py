"""Nodes die under VMs that poll and approve, and under operators who schedule and cancel."""

from pathlib import Path

import pytest

from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.nodes import running_nodes
from tests.cluster.traffic import Traffic
from tests.postgresql.databases import Database


@pytest.mark.thorough
@pytest.mark.parametrize(("vms", "kills"), [(100, 2), (2_000, 9)])
def test_a_killed_node_loses_nothing_and_no_incarnation_falls(
    tmp_path: Path, database: Database, vms: int, kills: int
) -> None:
    """I5, I7, I14, I23."""
    fleet = addresses(vms)
    with running_nodes(tmp_path, database.url, vms=fleet) as nodes:
        where = {name: node.metadata for name, node in nodes.items()}
        with IncarnationWatch(where, fleet) as watch:
            watch.wait_for_rounds()
            with Traffic(list(nodes.values()), fleet).running() as traffic:
                for number in range(kills):
                    node = list(nodes.values())[number % len(nodes)]
                    traffic.wait_for(25)
                    node.kill()
                    traffic.wait_for(25)
                    node.start()
            watch.wait_for_rounds()

    traffic.check(database.ask)


def test_a_vm_that_goes_from_node_to_node_never_reads_an_older_document(
    tmp_path: Path, database: Database
) -> None:
    """I7: each poll goes to another node than the one before, while documents change."""
    fleet = addresses(30)
    with running_nodes(tmp_path, database.url, "--balancing=any", vms=fleet) as nodes:
        where = {name: node.metadata for name, node in nodes.items()}
        with IncarnationWatch(where, fleet, interval=0.1, is_roaming=True) as watch:
            watch.wait_for_rounds()
            with Traffic(list(nodes.values()), fleet).running() as traffic:
                traffic.wait_for(150)
            watch.wait_for_rounds()

    changes = sum(len({seen.incarnation for seen in vm.seen}) for vm in watch.vms)
    assert changes > len(fleet)
    # A node that a busy machine keeps from the store for a second refuses newcomers meanwhile.
    assert watch.refusals.total() < watch.polls / 10
    traffic.check(database.ask)
