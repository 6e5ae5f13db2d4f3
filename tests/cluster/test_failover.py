"""The database's primary dies, and its standby takes over."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.nodes import Node, running_nodes
from tests.cluster.traffic import Traffic
from tests.cluster.under_watch import LOAD, polled, under_load
from tests.cluster.waiting import wait_until
from tests.postgresql.servers import private_folder
from tests.postgresql.standby import ServerPair, server_pair

DATABASE = "forewarned"


@contextlib.contextmanager
def _cluster(
    folder: Path, vms: dict[str, str], *, is_synchronous: bool
) -> Iterator[tuple[ServerPair, list[Node]]]:
    with (
        private_folder() as servers,
        server_pair(servers, is_synchronous=is_synchronous) as pair,
    ):
        pair.primary.ask(f"CREATE DATABASE {DATABASE}")
        with running_nodes(folder, pair.url(DATABASE), vms=vms) as nodes:
            yield pair, list(nodes.values())


@pytest.mark.thorough
@pytest.mark.parametrize(("vms", "failovers"), [(60, 1), (500, 20)])
def test_a_failover_to_a_synchronous_standby_loses_nothing(
    tmp_path: Path, vms: int, failovers: int
) -> None:
    """I5, I7, I14, I23, I25."""
    fleet = addresses(vms)
    with _cluster(tmp_path, fleet, is_synchronous=True) as (pair, nodes):
        where = {node.name: node.metadata for node in nodes}
        with IncarnationWatch(where, fleet) as watch:
            watch.wait_for_rounds()
            before = _highest(watch)
            with Traffic(nodes, fleet, threads=8).running() as traffic:
                for number in range(failovers):
                    traffic.wait_for(50)
                    pair.fail_over()
                    traffic.wait_for(50)
                    if number + 1 < failovers:
                        pair.rejoin()
            watch.wait_for_rounds()
            wait_until(lambda: all(vm.seen[-1].incarnation > before for vm in watch.vms))

        traffic.check(lambda query: pair.primary.ask(query, database=DATABASE))


def test_a_failover_that_loses_commits_shows_no_lower_incarnation(tmp_path: Path) -> None:
    """I1, I5, I7, I14, I23. Events and approvals that only the dead primary had are gone; what the
    standby had is not.
    """
    fleet = addresses(20)
    with _cluster(tmp_path, fleet | LOAD, is_synchronous=False) as (pair, nodes):

        def ask(query: str) -> list[Any]:
            return pair.primary.ask(query, database=DATABASE)

        with polled(nodes, fleet) as watch:
            with under_load(nodes, ask) as before:
                kept = requests.schedule(nodes[0], "vm-0").json["events"][0]["event_id"]
            pair.stop_streaming()
            lost = requests.schedule(nodes[1], "vm-0").json["events"][0]["event_id"]
            approved = requests.approve_patiently(nodes[2], kept, address=fleet["vm-0"])
            watch.wait_for_rounds()
            seen = [requests.poll(node, address=fleet["vm-0"]) for node in nodes]

            pair.fail_over()
            wait_until(lambda: all(requests.health(node).status == 200 for node in nodes))
            before.check()
            with under_load(nodes, ask):
                watch.wait_for_rounds(2)
            after = [requests.poll(node, address=fleet["vm-0"]) for node in nodes]
            why = requests.explained(nodes[0], kept)

    assert "the store may have lost changes" in why
    assert "(a standby has taken over, or " in why
    assert approved.status == 200
    assert [set(requests.events_of(answer)) for answer in seen] == [{kept, lost}] * 3
    assert [requests.events_of(answer) for answer in after] == [[kept]] * 3
    [status] = {answer.json["Events"][0]["EventStatus"] for answer in after}
    assert status == "Scheduled"
    highest = max(answer.json["DocumentIncarnation"] for answer in seen)
    assert all(answer.json["DocumentIncarnation"] > highest for answer in after)


def _highest(watch: IncarnationWatch) -> int:
    return max(vm.seen[-1].incarnation for vm in watch.vms)
