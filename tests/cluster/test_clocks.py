"""Wall clocks that are minutes off, on a node or on the database's host."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.nodes import Node, fleet_of
from tests.cluster.stored import due_in, started
from tests.cluster.under_watch import LOAD, under_watch
from tests.cluster.waiting import wait_until
from tests.postgresql.fake_time import FakeTime
from tests.postgresql.servers import PostgresServer, private_folder

DATABASE = "forewarned"
VMS = addresses(3)
OFF = timedelta(seconds=262)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocked:
    """A node and a database, each with a clock that can be moved."""

    server: PostgresServer
    server_clock: FakeTime
    node: Node
    node_clock: FakeTime

    def under_watch(self) -> AbstractContextManager[IncarnationWatch]:
        return under_watch([self.node], partial(self.server.ask, database=DATABASE), VMS)

    def schedule(self, vm: str) -> str:
        """An event that is due in 200 s by the database's clock, and that its VM has read."""
        event_id: str = requests.schedule(self.node, vm).json["events"][0]["event_id"]
        due_in(self.server, DATABASE, event_id, 200)
        wait_until(lambda: event_id in str(requests.poll(self.node, address=VMS[vm]).json))
        return event_id

    def approve(self, event_id: str, vm: str) -> int:
        return requests.approve(self.node, event_id, address=VMS[vm]).status

    def started(self, event_id: str) -> int:
        return started(self.server, DATABASE, event_id)


@pytest.fixture(scope="module")
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocked]:
    folder = tmp_path_factory.mktemp("clocks")
    fleet = folder / "fleet.toml"
    fleet.write_text(fleet_of({**VMS, **LOAD}))
    with private_folder() as servers:
        server_clock, node_clock = FakeTime(servers), FakeTime(folder)
        with PostgresServer(servers, environment=server_clock.environment) as server:
            server.ask(f"CREATE DATABASE {DATABASE}")
            with Node(
                name="a",
                store=server.url(DATABASE),
                folder=folder / "a",
                flags=("--workers=0", f"--fleet={fleet}"),
                environment=node_clock.environment,
            ) as node:
                yield Clocked(
                    server=server, server_clock=server_clock, node=node, node_clock=node_clock
                )


@pytest.mark.parametrize(
    ("offset", "vm"),
    [
        pytest.param(OFF, "vm-0", id="on"),
        pytest.param(-OFF, "vm-1", id="back", marks=pytest.mark.thorough),
    ],
)
def test_a_node_whose_clock_is_set_wrong_starts_nothing_early_and_serves_on(
    clocked: Clocked, offset: timedelta, vm: str
) -> None:
    """I1, I4, I7, I14, I23: the database's clock counts, and the time that has passed here vouches
    for it.
    """
    with clocked.under_watch():
        event_id = clocked.schedule(vm)

        clocked.node_clock.move(offset)
        other = clocked.schedule(vm)
        early = clocked.started(event_id)
        # On a busy machine a node may be late by a second, and asks to come again.
        wait_until(lambda: clocked.approve(other, vm) == 200)
        clocked.node_clock.move(timedelta(0))

    assert early == 0
    assert clocked.started(other) == 1


def test_a_node_that_starts_with_its_clock_behind_refuses_and_says_which_clocks_differ(
    clocked: Clocked, tmp_path: Path
) -> None:
    """I4: it can't know which of the two is wrong, and what starts early can't be taken back."""
    clock = FakeTime(tmp_path)
    clock.move(-OFF)
    node = Node(
        name="b",
        store=clocked.server.url(DATABASE),
        folder=tmp_path / "b",
        flags=("--workers=0",),
        environment=clock.environment,
    )

    with (
        clocked.under_watch(),
        pytest.raises(AssertionError, match="the server did not start"),
    ):
        node.start()

    assert "s ahead of this machine's" in node.log
    assert "Traceback" not in node.log


def test_a_database_whose_clock_jumps_ahead_starts_nothing_early(clocked: Clocked) -> None:
    """I1, I4, I7, I14, I23: nodes see that it is far ahead of them, write nothing, and show what
    they have.
    """
    with clocked.under_watch():
        event_id = clocked.schedule("vm-2")

        clocked.server_clock.move(OFF)
        wait_until(lambda: clocked.approve(event_id, "vm-2") == 503)
        shown = requests.poll(clocked.node, address=VMS["vm-2"])
        early = clocked.started(event_id)
        clocked.server_clock.move(timedelta(0))
        wait_until(lambda: clocked.approve(event_id, "vm-2") == 200)

    assert early == 0
    assert requests.events_of(shown) == [event_id]
    assert clocked.started(event_id) == 1
