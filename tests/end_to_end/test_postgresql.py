"""One node whose store is a PostgreSQL database, as a VM and an operator see it."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.server_process import Server, environment, local_command, serving
from tests.end_to_end.test_cli_access import FLEET, SERVICE, command
from tests.postgresql.databases import Database
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
    until = time.monotonic() + 30
    while command(server, "events", token=token).returncode and time.monotonic() < until:
        pass
    return token


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


def test_a_server_with_other_rules_does_not_start_while_one_runs(
    database: Database, tmp_path: Path
) -> None:
    (tmp_path / "fleet.toml").write_text(FLEET)
    with serving(tmp_path, *SERVICE, "--store", database.url):
        other = start(tmp_path / "other", "--store", database.url, "--silence", "2d")
    alone = start(tmp_path / "other", "--store", f"{database.url}_missing", "--silence", "2d")

    assert other.returncode == 1
    assert "silence is 1d there and 2d here" in other.stderr
    assert "Traceback" not in other.stderr
    assert "createdb" in alone.stderr


def test_every_node_lists_all_of_them(database: Database, tmp_path: Path) -> None:
    flags = ("--mode", "service", "--clock", "real", "--store", database.url)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with serving(tmp_path / "one", *flags) as one, serving(tmp_path / "two", *flags) as two:
        token = admitted(two, database, "rita", "reader")
        until = time.monotonic() + 30
        while True:
            told = json.loads(command(two, "nodes --json", token=token).stdout)
            if len(told["nodes"]) == 2 or time.monotonic() > until:
                break
        shown = command(two, "nodes", token=token).stdout

    assert {node["metadata"] for node in told["nodes"]} == {
        f"http://{each.metadata}" for each in (one, two)
    }
    [this] = [node for node in told["nodes"] if node["this"]]
    assert this["metadata"] == f"http://{two.metadata}"
    assert all(node["fresh"] for node in told["nodes"])
    assert (told["epoch"], told["standbys"]) == (1, "")
    assert "One copy" in shown


@pytest.mark.parametrize("workers", ["0", "1"])
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
    return subprocess.run(
        [sys.executable, "-m", "forewarned", "serve", "--mode", "service", *anywhere, *flags],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_listing_of_settings_hides_the_password(database: Database, tmp_path: Path) -> None:
    url = database.url.replace("postgres@", "postgres:s3cret@")
    with serving(tmp_path, "--mode", "service", "--clock", "real", "--store", url) as server:
        token = admitted(server, database, "rita", "reader")
        told = command(server, "settings --running", token=token)
        local = local_command(server, "settings", "--mode", "service", "--store", url)

    assert "postgres:***@" in told.stdout
    assert "s3cret" not in told.stdout + str(local)
