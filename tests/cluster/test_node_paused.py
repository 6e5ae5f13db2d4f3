"""A node stands still inside a transaction, with a lock that others want."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from psycopg import OperationalError
from psycopg.errors import IdleInTransactionSessionTimeout

from forewarned.config.values import DatabaseUrl
from forewarned.storage.postgres.connection import LIMITS, connect
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.url import target
from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, running_nodes
from tests.cluster.under_watch import LOAD, under_watch
from tests.cluster.waiting import wait_until
from tests.postgresql.databases import Database, Databases
from tests.postgresql.pauses import paused

VMS = addresses(2)
LOCK = "SELECT 1 FROM scopes WHERE id = 'vm/vm-0' FOR UPDATE"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
# More than the buffers of a connection hold, so the server gets stuck while it sends.
MUCH = "UPDATE events SET description = repeat('x', 30000000) WHERE scope_id = 'vm/vm-0'"
SENDING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientRead' AND state = 'active' AND pid = %s"
OTHER_LOCK = "SELECT pg_current_xact_id() FROM scopes WHERE id = 'vm/vm-1' FOR UPDATE"
LITTLE = "UPDATE events SET description = '' WHERE scope_id = 'vm/vm-0'"


@pytest.fixture(scope="module")
def shared(databases: Databases, migrated_template: Database) -> Iterator[Database]:
    with databases.copy(migrated_template) as made:
        yield made


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, shared: Database) -> Iterator[dict[str, Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    fleet = {**VMS, **LOAD}
    with running_nodes(folder, shared.url, "--workers=1", vms=fleet, names=("a", "b")) as running:
        yield running


@pytest.mark.parametrize("rows", ["few", "many"])
def test_a_node_that_stands_still_in_a_transaction_holds_no_one_up_for_five_seconds(
    nodes: dict[str, Node], shared: Database, rows: str
) -> None:
    """I5, I7, I14, I20, I23: idle in its transaction, or with rows that it does not read."""
    stopped, other = nodes["a"], nodes["b"]
    with under_watch(list(nodes.values()), shared.ask, VMS):
        event_id = requests.schedule(other, "vm-0").json["events"][0]["event_id"]
        wait_until(lambda: event_id in requests.events_of(_polled(stopped)))
        if rows == "many":
            shared.ask(MUCH)
        answered, approved, held = _approved_by_both(stopped, other, shared, event_id)

    assert approved.status == 200
    assert held < 5
    # It took up its transaction again, or said that it could not.
    assert answered.status in {200, 503}
    starts = "SELECT count(*) FROM history WHERE action = 'started' AND event_id = %s"
    assert shared.ask(starts, event_id) == [(1,)]
    wait_until(lambda: requests.health(stopped).status == 200)


def _approved_by_both(
    stopped: Node, other: Node, shared: Database, event_id: str
) -> tuple[requests.Response, requests.Response, float]:
    """What either node answers, of which one stands still, and how long it held the lock."""
    with ThreadPoolExecutor(1) as pool, shared.connect() as holding:
        # The test ends though the lock does not.
        holding.execute("SET lock_timeout = '20s'")
        holding.commit()
        holding.execute(LOCK)
        asked = pool.submit(requests.approve, stopped, event_id, address=VMS["vm-0"])
        wait_until(lambda: shared.ask(WAITING, holding.info.backend_pid) == [(1,)])
        with paused(stopped.pid("writer")):
            # The lock is the stopped node's now.
            holding.rollback()
            began = time.monotonic()
            holding.execute(LOCK)
            held = time.monotonic() - began
            holding.execute(LITTLE)
            holding.commit()
            approved = requests.approve_patiently(other, event_id, address=VMS["vm-0"])
        return asked.result(), approved, held


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_session_that_the_server_does_not_take_for_idle_holds_no_one_up_for_five_seconds(
    nodes: dict[str, Node], shared: Database, is_sent: bool
) -> None:
    """I5, I7, I14, I20, I23: before the Sync that follows a statement, and behind the Flush that
    follows that.
    """
    other = nodes["b"]
    with under_watch(list(nodes.values()), shared.ask, VMS):
        event_id = requests.schedule(other, "vm-1").json["events"][0]["event_id"]
        with (sent if is_sent else half_sent)(shared, OTHER_LOCK):
            began = time.monotonic()
            approved = requests.approve_patiently(other, event_id, address=VMS["vm-1"])
            held = time.monotonic() - began

    assert approved.status == 200
    assert held < 5


@contextmanager
def half_sent(shared: Database, statement: str) -> Iterator[None]:
    """A session that has sent a statement, and not the Sync that follows it."""
    with (
        connect(target(DatabaseUrl(shared.url))) as stopped,
        # The node has ended it by then.
        suppress(OperationalError),
        stopped.pipeline(),
    ):
        stopped.execute(LIMITS)
        stopped.execute(statement.encode())
        wait_until(lambda: shared.ask(SENDING, stopped.info.backend_pid) == [(1,)])
        yield


@contextmanager
def sent(shared: Database, statement: str) -> Iterator[None]:
    """A session that has asked as nodes do, and does nothing more."""
    # By then the node has ended it, or the server has: both allow two seconds.
    ended = suppress(OperationalError, IdleInTransactionSessionTimeout)
    with ended, connect(target(DatabaseUrl(shared.url))) as stopped:
        PostgresDatabase(stopped).ask_together([(LIMITS, ()), (statement, ())])
        yield


def _polled(node: Node) -> requests.Response:
    return requests.poll(node, address=VMS["vm-0"])
