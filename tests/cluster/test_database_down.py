"""PostgreSQL is away for a while, and comes back."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, running_nodes
from tests.cluster.stored import due_in, started
from tests.cluster.traffic import PATIENCE
from tests.cluster.under_watch import LOAD, polled, under_load
from tests.cluster.waiting import wait_until
from tests.postgresql.servers import DURABLE, PostgresServer, private_folder

DATABASE = "forewarned"
OVERDUE = """
    SELECT count(*) FROM events
    WHERE status = 'Scheduled' AND not_before < extract(epoch FROM clock_timestamp()) * 1000000
"""
VMS = addresses(20)
NEWCOMERS = addresses(2, prefix="new")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with private_folder() as folder, PostgresServer(folder, settings=DURABLE) as running:
        running.ask(f"CREATE DATABASE {DATABASE}")
        yield running


@pytest.fixture
def nodes(tmp_path: Path, server: PostgresServer) -> Iterator[list[Node]]:
    # Newcomers have addresses that the others don't.
    everyone = VMS | LOAD | {name: f"127.11.0.{n}" for n, name in enumerate(NEWCOMERS, 1)}
    with running_nodes(tmp_path, server.url(DATABASE), vms=everyone, names=("a", "b")) as running:
        yield list(running.values())


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.thorough)])
def test_without_its_database_a_node_shows_the_last_documents_and_promises_nothing(
    server: PostgresServer, nodes: list[Node], seconds: int
) -> None:
    """I5, I7, I14, I20, I23, I24. An event that fell due meanwhile starts once, when the database
    is back.
    """
    ask = partial(server.ask, database=DATABASE)
    with (
        polled(nodes, VMS, interval=0.5) as watch,
        # Clients go on asking for as long as it takes.
        under_load(nodes, ask, patience=PATIENCE + 2 * seconds),
    ):
        due, waiting = (
            requests.schedule(nodes[0], name).json["events"][0]["event_id"]
            for name in ("vm-0", "vm-1")
        )
        due_in(server, DATABASE, due, seconds / 2)
        for node in nodes:
            wait_until(lambda node=node: _shows(node, "vm-1", waiting))  # type: ignore[misc]

        server.stop(immediate=True)
        documents = watch.documents.total()
        wait_until(lambda: all(requests.health(node).status == 503 for node in nodes), within=20)
        refusals = [requests.approve(node, waiting, address=VMS["vm-1"]) for node in nodes]
        strangers = [requests.poll(node, address="127.11.0.1") for node in nodes]
        for _ in range(2 * seconds):
            watch.wait_for_rounds()
            # At both, so that it is no newcomer at either when a minute has passed.
            shown = [requests.poll(node, address=VMS["vm-1"]) for node in nodes]
        refused = watch.refusals.total()
        server.start()
        late = wait_until(lambda: started(server, DATABASE, due) == 1, within=20)
        wait_until(lambda: all(requests.health(node).status == 200 for node in nodes), within=20)
        wait_until(lambda: ask(OVERDUE) == [(0,)])
        approved = [
            requests.approve_patiently(node, waiting, address=VMS["vm-1"]).status for node in nodes
        ]
        welcomed = [requests.poll(node, address="127.11.0.1").status for node in nodes]

    assert [answer.status for answer in refusals + strangers] == [503] * 4
    assert all("retry-after" in answer.headers for answer in refusals + strangers)
    assert [requests.events_of(answer) for answer in shown] == [[waiting], [waiting]]
    assert refused == 0
    assert watch.documents.total() > documents
    assert late < 15
    assert approved == [200, 200]
    assert welcomed == [200, 200]
    assert started(server, DATABASE, due) == started(server, DATABASE, waiting) == 1


def _shows(node: Node, vm: str, event_id: str) -> bool:
    return event_id in requests.events_of(requests.poll(node, address=VMS[vm]))
