"""A crowd of VMs behind nodes that die, on a database that fails over, all at the same time."""

import itertools
import time
from pathlib import Path

import pytest

from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.nodes import running_nodes
from tests.cluster.traffic import Traffic
from tests.postgresql.servers import private_folder
from tests.postgresql.standby import server_pair

DATABASE = "forewarned"
VMS = addresses(2_000)
CHANGES = 50
"""Confirmed ones between a fault and the next."""


@pytest.mark.parametrize(
    ("seconds", "interval", "threads"),
    [(30, 5.0, 2), pytest.param(300, 2.0, 4, marks=pytest.mark.thorough)],
)
def test_a_crowd_loses_nothing_while_nodes_die_and_the_database_fails_over(
    tmp_path: Path, seconds: int, interval: float, threads: int
) -> None:
    """I5, I7, I14, I23, I25. Faults follow one another for the seconds.

    The short form stands for the tests of either fault alone, which `make test` leaves out.
    """
    with (
        private_folder() as servers,
        server_pair(servers, is_synchronous=True) as pair,
    ):
        pair.primary.ask(f"CREATE DATABASE {DATABASE}")
        with running_nodes(tmp_path, pair.url(DATABASE), vms=VMS) as nodes:
            where = {name: node.metadata for name, node in nodes.items()}
            with IncarnationWatch(where, VMS, interval=interval) as watch:
                watch.wait_for_rounds()
                before = max(vm.seen[-1].incarnation for vm in watch.vms)
                with Traffic(list(nodes.values()), VMS, threads=threads).running() as traffic:
                    end = time.monotonic() + seconds
                    for number in itertools.count():
                        node = list(nodes.values())[number % len(nodes)]
                        node.kill()
                        pair.fail_over()
                        traffic.wait_for(CHANGES)
                        node.start()
                        traffic.wait_for(CHANGES)
                        if time.monotonic() > end:
                            break
                        pair.rejoin()
                    traffic.wait_for_timed_starts(2)
                watch.wait_for_rounds()
                assert all(vm.seen[-1].incarnation > before for vm in watch.vms)

            traffic.check(lambda query: pair.primary.ask(query, database=DATABASE))
