"""A node that is told of no change by NOTIFY finds it all the same."""

from pathlib import Path

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import running_nodes
from tests.cluster.waiting import wait_until
from tests.postgresql.databases import Database

VMS = addresses(1)
SESSIONS = (
    "SELECT count(pg_terminate_backend(pid)) > 1 FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def test_a_change_is_seen_though_every_session_that_listened_was_ended(
    tmp_path: Path, database: Database
) -> None:
    """I25, F6."""
    with running_nodes(tmp_path, database.url, vms=VMS, names=("a", "b")) as nodes:
        for node in nodes.values():
            requests.poll(node, address=VMS["vm-0"])

        ended = database.ask(SESSIONS)
        wait_until(lambda: requests.schedule(nodes["a"], "vm-0").status == 201, within=10)
        took = wait_until(
            lambda: requests.events_of(requests.poll(nodes["b"], address=VMS["vm-0"])) != []
        )

    assert ended == [(True,)]
    # A look at the store comes every 50 ms; the rest is for connecting, and for a busy machine.
    assert took < 2
