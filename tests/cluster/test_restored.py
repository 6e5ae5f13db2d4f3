"""The database is an older one than the nodes have shown: a backup was restored."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import psycopg
import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.nodes import Node, running_nodes, start_all, stop_all
from tests.cluster.stored import due_in, started
from tests.cluster.under_watch import LOAD, Load, polled, under_load
from tests.cluster.waiting import wait_until
from tests.postgresql.servers import DURABLE, PostgresServer, private_folder

DATABASE = "forewarned"
VMS = addresses(10)
NODES = ("a", "b")
LOCK = "SELECT 1 FROM scopes WHERE id = 'vm/vm-1' FOR UPDATE"
NOT_BEFORE = "SELECT not_before FROM events WHERE id = %s"
STARTED_AT = "SELECT started_at FROM events WHERE id = %s"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with private_folder() as folder, PostgresServer(folder, settings=DURABLE) as running:
        running.ask(f"CREATE DATABASE {DATABASE}")
        yield running


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory, server: PostgresServer) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    with running_nodes(folder, server.url(DATABASE), vms={**VMS, **LOAD}, names=NODES) as running:
        yield list(running.values())


@pytest.fixture
def nodes(_made: list[Node], server: PostgresServer) -> list[Node]:
    """Two that other tests have used, and left without open events."""
    for node in _made:
        node.store = server.url(DATABASE)
    start_all([node for node in _made if not node.is_running])
    return _made


@dataclass(frozen=True, slots=True, kw_only=True)
class Backed:
    """What a backup has, and what became of it later, which the backup knows nothing of."""

    load: Load
    due: str
    """An event that started by time after the backup was taken."""
    due_at: int
    """Its NotBefore, in microseconds."""
    approved: str
    """An event that was approved and started after the backup was taken, minutes early."""
    incarnation: int
    """The last that VM 0 was shown, whose document was changed often."""


@pytest.mark.parametrize(
    "are_down",
    [
        pytest.param(False, id="nodes run"),
        pytest.param(True, id="nodes are down", marks=pytest.mark.thorough),
    ],
)
def test_after_an_old_base_backup_incarnations_are_higher_than_ever(
    server: PostgresServer, nodes: list[Node], are_down: bool
) -> None:
    """I1, I5, I7, I14, I23, F17: it is the same server and timeline, and its log is shorter."""
    backup = server.folder / f"backup-{are_down}"
    with polled(nodes, VMS) as watch:
        backed = _backed_up(server, nodes, watch, lambda: server.back_up(backup))

        if are_down:
            stop_all(nodes)
        server.restore(backup)
        if are_down:
            start_all(nodes)
        _check(server, nodes, watch, backed, reason="PostgreSQL was restored from a backup")


def test_after_an_old_dump_was_loaded_elsewhere_incarnations_are_higher_than_ever(
    server: PostgresServer, nodes: list[Node]
) -> None:
    """I1, I5, I7, I14, I23, F17: another server, whose transactions have numbers that mean nothing
    here.
    """
    with (
        private_folder() as folder,
        PostgresServer(folder, settings=DURABLE) as other,
        polled(nodes, VMS) as watch,
    ):
        dump = f"{server.folder}/dump.sql"
        backed = _backed_up(
            server,
            nodes,
            watch,
            lambda: server.run("pg_dump", f"--dbname={server.url(DATABASE)}", f"--file={dump}"),
        )

        stop_all(nodes)
        other.ask(f"CREATE DATABASE {DATABASE}")
        other.run("psql", "--quiet", f"--dbname={other.url(DATABASE)}", f"--file={dump}")
        for node in nodes:
            node.store = other.url(DATABASE)
        start_all(nodes)
        reason = "the database is on a different PostgreSQL server"
        _check(other, nodes, watch, backed, reason=reason)
    stop_all(nodes)


def _backed_up(
    server: PostgresServer,
    nodes: list[Node],
    watch: IncarnationWatch,
    back_up: Callable[[], object],
) -> Backed:
    with under_load(nodes, partial(server.ask, database=DATABASE)) as load:
        due, approved = (_scheduled(nodes[0], vm) for vm in ("vm-1", "vm-2"))
    due_in(server, DATABASE, due, 1)
    with psycopg.connect(server.url(DATABASE)) as holding:
        # So no node starts it before it is in the backup, however long that takes.
        holding.execute(LOCK)
        [(due_at,)] = server.ask(NOT_BEFORE, due, database=DATABASE)
        back_up()
        holding.rollback()
    for _ in range(5):
        requests.cancel(nodes[1], _scheduled(nodes[0], "vm-0"))
    _scheduled(nodes[0], "vm-0")
    answer = requests.approve_patiently(nodes[1], approved, address=VMS["vm-2"])
    assert answer.status == 200
    wait_until(lambda: started(server, DATABASE, due) == 1, within=20)
    watch.wait_for_rounds(2)
    return Backed(
        load=load,
        due=due,
        due_at=due_at,
        approved=approved,
        incarnation=watch.vms[0].seen[-1].incarnation,
    )


def _check(
    server: PostgresServer,
    nodes: list[Node],
    watch: IncarnationWatch,
    backed: Backed,
    *,
    reason: str,
) -> None:
    """Of a server that has the backup, and nothing of what came after it. `reason` is why."""
    wait_until(lambda: all(requests.health(node).status == 200 for node in nodes))
    late = wait_until(lambda: started(server, DATABASE, backed.due) == 1, within=20)
    replace(backed.load, ask=partial(server.ask, database=DATABASE)).check()
    with under_load(nodes, partial(server.ask, database=DATABASE)):
        watch.wait_for_rounds(2)
    shown = [requests.poll(node, address=VMS["vm-0"]) for node in nodes]
    why = requests.explained(nodes[1], backed.approved)
    early = started(server, DATABASE, backed.approved)
    again = requests.approve_patiently(nodes[0], backed.approved, address=VMS["vm-2"])

    assert all(answer.json["Events"] == [] for answer in shown)
    assert all(answer.json["DocumentIncarnation"] > backed.incarnation for answer in shown)
    assert f"({reason})" in why
    assert late < 15
    [(started_at,)] = server.ask(STARTED_AT, backed.due, database=DATABASE)
    assert started_at >= backed.due_at
    assert started(server, DATABASE, backed.due) == 1
    assert early == 0
    assert again.status == 200
    assert started(server, DATABASE, backed.approved) == 1
    for event_id in (backed.due, backed.approved):
        requests.complete(nodes[0], event_id)


def _scheduled(node: Node, vm: str) -> str:
    event_id: str = requests.schedule(node, vm).json["events"][0]["event_id"]
    return event_id
