"""The database is an older one than the nodes have shown: a backup was restored."""

from collections.abc import Iterator

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.nodes import Node, running_nodes, start_all, stop_all
from tests.cluster.waiting import wait_until
from tests.postgresql.servers import PostgresServer, private_folder

DATABASE = "forewarned"
VMS = addresses(10)
NODES = ("a", "b")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with private_folder() as folder, PostgresServer(folder) as running:
        running.ask(f"CREATE DATABASE {DATABASE}")
        yield running


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory, server: PostgresServer) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    with running_nodes(folder, server.url(DATABASE), vms=VMS, names=NODES) as running:
        yield list(running.values())


@pytest.fixture
def nodes(_made: list[Node], server: PostgresServer) -> list[Node]:
    """Two that other tests have used, and left without open events."""
    for node in _made:
        node.store = server.url(DATABASE)
    start_all([node for node in _made if not node.is_running])
    return _made


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
    """I1, I7, F17: it is the same server and timeline, and its log is shorter than it was."""
    backup = server.folder / f"backup-{are_down}"
    with IncarnationWatch(_places(nodes), VMS, interval=0.3) as watch:
        watch.wait_for_rounds()
        server.back_up(backup)
        lost = _change_often(nodes, watch)

        if are_down:
            stop_all(nodes)
        server.restore(backup)
        if are_down:
            start_all(nodes)
        after = _settled(nodes, watch)

    assert all(answer.json["Events"] == [] for answer in after)
    assert all(answer.json["DocumentIncarnation"] > lost for answer in after)


def test_after_an_old_dump_was_loaded_elsewhere_incarnations_are_higher_than_ever(
    server: PostgresServer, nodes: list[Node]
) -> None:
    """I1, I7, F17: another server, whose transactions have numbers that mean nothing here."""
    with (
        private_folder() as folder,
        PostgresServer(folder) as other,
        IncarnationWatch(_places(nodes), VMS, interval=0.3) as watch,
    ):
        watch.wait_for_rounds()
        dump = server.run("pg_dump", f"--dbname={server.url(DATABASE)}")
        lost = _change_often(nodes, watch)

        stop_all(nodes)
        other.ask(f"CREATE DATABASE {DATABASE}")
        (folder / "dump.sql").write_text(dump)
        other.run("psql", "--quiet", f"--dbname={other.url(DATABASE)}", f"--file={folder}/dump.sql")
        for node in nodes:
            node.store = other.url(DATABASE)
        start_all(nodes)
        after = _settled(nodes, watch)
        stop_all(nodes)

    assert all(answer.json["Events"] == [] for answer in after)
    assert all(answer.json["DocumentIncarnation"] > lost for answer in after)


def _places(nodes: list[Node]) -> dict[str, str]:
    return {node.name: node.metadata for node in nodes}


def _change_often(nodes: list[Node], watch: IncarnationWatch) -> int:
    """Change the document of vm-0, let its VM see it, and return the last incarnation."""
    for _ in range(5):
        made = requests.schedule(nodes[0], "vm-0").json["events"][0]["event_id"]
        requests.cancel(nodes[1], made)
    requests.schedule(nodes[0], "vm-0")
    watch.wait_for_rounds(2)
    return watch.vms[0].seen[-1].incarnation


def _settled(nodes: list[Node], watch: IncarnationWatch) -> list[requests.Response]:
    wait_until(lambda: all(requests.health(node).status == 200 for node in nodes))
    watch.wait_for_rounds(2)
    return [requests.poll(node, address=VMS["vm-0"]) for node in nodes]
