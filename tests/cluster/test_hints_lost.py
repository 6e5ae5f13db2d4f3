"""A node that is told of no change by NOTIFY finds it all the same."""

import itertools
import statistics
import time
from collections.abc import Iterator

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, running_nodes
from tests.cluster.under_watch import LOAD, polled, under_watch
from tests.cluster.waiting import wait_until
from tests.postgresql.databases import Database, Databases

VMS = addresses(2)
LOOK = 0.05
"""Seconds between two looks of a node that gets no hint."""
SLACK = 0.05
"""Seconds for the look itself, and for a busy machine."""
SESSIONS = """
    SELECT pid, query_start FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'forewarned'
"""
SAMPLES = 6
# As a node writes it, and no node has written it: so no one is told.
CHANGE = """
    UPDATE scopes SET incarnation = incarnation + 1, revision = revision + 1,
        changed = pg_current_xact_id()
    WHERE id = 'vm/vm-1'
"""


@pytest.fixture(scope="module")
def shared(databases: Databases, migrated_template: Database) -> Iterator[Database]:
    with databases.copy(migrated_template) as made:
        yield made


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, shared: Database) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    with running_nodes(folder, shared.url, vms={**VMS, **LOAD}, names=("a", "b")) as running:
        yield list(running.values())


def test_a_change_is_seen_though_the_sessions_that_listened_were_ended(
    shared: Database, nodes: list[Node]
) -> None:
    """I5, I7, I14, I23, I25, F6: hints that come before a node listens again are lost."""
    listening = _listeners(shared, count=len(nodes))
    with under_watch(nodes, shared.ask, VMS):
        for pid in listening:
            shared.ask("SELECT pg_terminate_backend(%s)", pid)
        wait_until(lambda: requests.schedule(nodes[0], "vm-0").status == 201, within=10)
        took = wait_until(
            lambda: requests.events_of(requests.poll(nodes[1], address=VMS["vm-0"])) != []
        )

    # Most of it is for connecting again, and for a busy machine.
    assert took < 2


def test_a_change_of_which_no_node_is_told_is_seen_with_the_next_look(
    shared: Database, nodes: list[Node]
) -> None:
    """I7, I25, F6. The median of 20, as a busy machine may take longer over some."""
    with polled(nodes, VMS):
        delays = [_seen_after(shared, node) for node in nodes * 10]

    assert statistics.median(delays) < LOOK + SLACK, sorted(delays)


def _listeners(database: Database, *, count: int) -> set[int]:
    """Nodes listen on the connection that they look with, so it is in use all the time."""
    rounds: list[dict[int, object]] = []

    def are_alone() -> bool:
        rounds.append(dict(database.ask(SESSIONS)))
        return len(rounds) > SAMPLES and len(_busy(rounds[-SAMPLES:])) == count

    # No other session is used more than once in a second, by nodes at rest.
    wait_until(are_alone, every=2 * LOOK)
    return _busy(rounds[-SAMPLES:])


def _busy(rounds: list[dict[int, object]]) -> set[int]:
    """Sessions that were used between each two of them."""
    return {
        pid
        for pid in rounds[-1]
        if all(before.get(pid) != after.get(pid) for before, after in itertools.pairwise(rounds))
    }


def _seen_after(database: Database, node: Node) -> float:
    """Seconds from a commit until the node shows it."""
    before = _incarnation(node)
    database.ask(CHANGE)
    committed = time.monotonic()
    while _incarnation(node) == before:
        assert time.monotonic() < committed + requests.PATIENCE, "not seen"
    return time.monotonic() - committed


def _incarnation(node: Node) -> int:
    return int(requests.poll(node, address=VMS["vm-1"]).json["DocumentIncarnation"])
