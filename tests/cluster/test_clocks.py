"""Wall clocks that are minutes off, on a node or on the database's host."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, fleet_of
from tests.cluster.stored import due_in, started
from tests.cluster.waiting import wait_until
from tests.postgresql.fake_time import FakeTime
from tests.postgresql.servers import PostgresServer, private_folder

DATABASE = "forewarned"
VMS = addresses(2)
OFF = timedelta(seconds=262)


@pytest.fixture
def server_clock(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[PostgresServer, FakeTime]]:
    with private_folder() as folder:
        clock = FakeTime(folder)
        with PostgresServer(folder, environment=clock.environment) as server:
            server.ask(f"CREATE DATABASE {DATABASE}")
            yield server, clock


@pytest.mark.parametrize("offset", [OFF, -OFF], ids=["ahead", "behind"])
def test_a_node_with_a_wrong_clock_starts_nothing_early(
    tmp_path: Path, server_clock: tuple[PostgresServer, FakeTime], offset: timedelta
) -> None:
    """I1, I4, I20: the database's clock counts. A node far behind it writes nothing."""
    server, _ = server_clock
    clock = FakeTime(tmp_path)
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(fleet_of(VMS))
    store = server.url(DATABASE)
    right = Node(name="a", store=store, folder=tmp_path / "a", flags=(f"--fleet={fleet}",))
    wrong = Node(name="b", store=store, folder=tmp_path / "b", environment=clock.environment)
    with right, wrong:
        for node in (right, wrong):
            requests.poll(node, address=VMS["vm-0"])
        later = requests.schedule(right, "vm-0").json["events"][0]["event_id"]
        wait_until(lambda: later in requests.events_of(_polled(wrong)))

        clock.move(offset)
        # The next instant that anything falls due at is far off for the store, near for the node.
        due_in(server, DATABASE, later, 200)
        if offset < timedelta(0):
            wait_until(lambda: _approved(wrong, later).status == 503, within=20)
            early = started(server, DATABASE, later)
            assert requests.health(wrong).status == 503
            assert _approved(right, later).status == 200
        else:
            early = started(server, DATABASE, later)
            assert _approved(wrong, later).status == 200

        clock.move(timedelta(0))
        wait_until(lambda: requests.health(wrong).status == 200, within=20)

    assert early == 0
    assert started(server, DATABASE, later) == 1


def test_a_database_whose_clock_jumps_ahead_starts_nothing_early(
    tmp_path: Path, server_clock: tuple[PostgresServer, FakeTime]
) -> None:
    """I1, I4: every node sees that the database is far ahead of it, and writes nothing."""
    server, clock = server_clock
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(fleet_of(VMS))
    with Node(
        name="a",
        store=server.url(DATABASE),
        folder=tmp_path / "a",
        flags=(f"--fleet={fleet}",),
    ) as node:
        requests.poll(node, address=VMS["vm-0"])
        event_id = requests.schedule(node, "vm-0").json["events"][0]["event_id"]
        due_in(server, DATABASE, event_id, 200)

        clock.move(OFF)
        wait_until(lambda: _approved(node, event_id).status == 503, within=20)
        early = started(server, DATABASE, event_id)
        shown = _polled(node)
        clock.move(timedelta(0))
        wait_until(lambda: _approved(node, event_id).status == 200, within=20)

    assert early == 0
    assert requests.events_of(shown) == [event_id]
    assert started(server, DATABASE, event_id) == 1


def _polled(node: Node) -> requests.Response:
    return requests.poll(node, address=VMS["vm-0"])


def _approved(node: Node, event_id: str) -> requests.Response:
    return requests.approve(node, event_id, address=VMS["vm-0"])
