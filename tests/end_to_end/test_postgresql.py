"""One node whose store is a PostgreSQL database, as a VM and an operator see it."""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests import preloaded
from tests.end_to_end.server_process import (
    WORKERS,
    Server,
    environment,
    local_command,
    serving,
)
from tests.end_to_end.test_cli_access import FLEET, SERVICE, command
from tests.postgresql.databases import Database, Databases
from tests.postgresql.servers import free_port


def document(server: Server, source: str = "127.0.0.1") -> Any:  # JSON, which tests look into
    """As VMs read it: a node that has yet to hear of the store asks them to come again."""
    until = time.monotonic() + 30
    while (answer := server.get(source=source)).status == 503 and time.monotonic() < until:
        assert answer.headers["retry-after"]
    assert answer.status == 200, answer
    return answer.json


def admitted(server: Server, database: Database, name: str, role: str) -> str:
    """The token of a new principal, who is known to all nodes."""
    words = ("token", "create", name, "--role", role, "--store", database.url)
    token = str(local_command(server, *words)["token"])
    # Nodes look for new principals once a second.
    pause = threading.Event()
    until = time.monotonic() + 30
    while not _is_let_in(server, token) and time.monotonic() < until:
        pause.wait(0.1)
    return token


def _is_let_in(server: Server, token: str) -> bool:
    with contextlib.closing(HTTPConnection(server.control, timeout=60)) as connection:
        connection.request("GET", "/v1/clock", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status == 200


def test_an_event_lives_through_a_restart_of_its_node(database: Database, tmp_path: Path) -> None:
    """I7, I14, I23."""
    (tmp_path / "fleet.toml").write_text(FLEET)
    flags = (*SERVICE, "--store", database.url)
    with serving(tmp_path, *flags) as server:
        token = admitted(server, database, "olga", "maintainer")
        first = document(server)
        scheduled = command(server, "schedule reboot --vm web --json", token=token)
        assert scheduled.returncode == 0, scheduled.stderr
        [event] = document(server)["Events"]
        assert (event["EventStatus"], event["Resources"]) == ("Scheduled", ["web"])
        assert document(server, "127.0.0.2")["Events"] == []

        assert server.approve(event["EventId"], source="127.0.0.1").status == 200
        started = document(server)

    with serving(tmp_path, *flags) as server:
        after = document(server)
        done = command(server, f"complete {event['EventId']}", token=token)
        assert done.returncode == 0, done.stderr
        last = document(server)

    assert started == after
    [shown] = after["Events"]
    assert (shown["EventId"], shown["EventStatus"]) == (event["EventId"], "Started")
    assert last["Events"] == []
    incarnations = [each["DocumentIncarnation"] for each in (first, started, last)]
    assert incarnations == sorted(set(incarnations))
    assert not (server.data / "forewarned.db").exists()
    assert database.ask("SELECT status FROM events") == [("Completed",)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two nodes that tests share. Both have a password in the URL of their database."""

    database: Database
    url: str
    one: Server
    two: Server
    token: str
    """Of a reader."""


@pytest.fixture(scope="module")
def pair(
    databases: Databases, migrated_template: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    for name in ("one", "two"):
        (folder / name).mkdir()
    with databases.copy(migrated_template) as database:
        url = database.url.replace("postgres@", "postgres:s3cret@")
        flags = ("--mode", "service", "--clock", "real", "--store", url)
        with serving(folder / "one", *flags) as one, serving(folder / "two", *flags) as two:
            token = admitted(two, database, "rita", "reader")
            yield Pair(database=database, url=url, one=one, two=two, token=token)


def test_a_server_with_other_rules_does_not_start_while_one_runs(
    pair: Pair, tmp_path: Path
) -> None:
    other = start(tmp_path / "other", "--store", pair.url, "--silence", "2d")
    missing = f"{pair.database.url}_missing"
    alone = start(tmp_path / "other", "--store", missing, "--silence", "2d")

    assert other.returncode == 1
    assert "silence is 1d there and 2d here" in other.stderr
    assert "Traceback" not in other.stderr
    assert "createdb" in alone.stderr


def test_every_node_lists_all_of_them(pair: Pair) -> None:
    until = time.monotonic() + 30
    while True:
        told = json.loads(command(pair.two, "nodes --json", token=pair.token).stdout)
        if len(told["nodes"]) == 2 or time.monotonic() > until:
            break
    shown = command(pair.two, "nodes", token=pair.token).stdout

    assert {node["metadata"] for node in told["nodes"]} == {
        f"http://{each.metadata}" for each in (pair.one, pair.two)
    }
    [this] = [node for node in told["nodes"] if node["this"]]
    assert this["metadata"] == f"http://{pair.two.metadata}"
    assert all(node["fresh"] for node in told["nodes"])
    assert (told["epoch"], told["standbys"]) == (1, "")
    assert "One copy" in shown


def test_the_listing_of_settings_hides_the_password(pair: Pair) -> None:
    told = command(pair.one, "settings --running", token=pair.token)
    local = local_command(pair.one, "settings", "--mode", "service", "--store", pair.url)

    assert "postgres:***@" in told.stdout
    assert "s3cret" not in told.stdout + str(local)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_server_without_its_database_says_why_it_does_not_start(
    tmp_path: Path, workers: str
) -> None:
    url = f"postgresql://me:s3cret@127.0.0.1:{free_port()}/store"

    done = start(tmp_path, "--store", url, "--workers", workers)

    assert done.returncode == 1
    assert "can't connect to PostgreSQL database store at 127.0.0.1:" in done.stderr
    assert "Connection refused" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def start(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """A server that is expected not to."""
    folder.mkdir(exist_ok=True)
    anywhere = ("--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0", "--arm", "127.0.0.1:0")
    return preloaded.run(
        *("serve", "--mode", "service", "--workers", "0", *anywhere, *flags),
        folder=folder,
        environment=environment(),
    )
