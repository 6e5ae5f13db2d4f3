"""F17: yesterday's backup of a real server is brought back, and its VMs go on reading."""

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, running_nodes
from tests.cluster.under_watch import LOAD, polled, under_load
from tests.cluster.waiting import wait_until
from tests.end_to_end.server_process import Server, serving

REBOOT = {"type": "Reboot", "resources": ["web"]}


def schedule(server: Server) -> str:
    [event] = server.call("POST", "/v1/events", REBOOT)["events"]
    event_id: str = event["event_id"]
    return event_id


def test_i1_i7_after_a_restore_incarnations_are_higher_and_nothing_starts_early(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as server:
        server.get()
        kept = schedule(server)
        before = server.get().json["Events"]
    shutil.copytree(server.data, tmp_path / "backup", ignore=shutil.ignore_patterns("*.sock"))
    with serving(tmp_path) as server:
        for _ in range(3):
            server.call("POST", f"/v1/events/{schedule(server)}/cancel", {})
        server.approve(kept)
        last_seen = server.get().json["DocumentIncarnation"]

    shutil.rmtree(server.data)
    shutil.copytree(tmp_path / "backup", server.data)
    with serving(tmp_path) as server:
        restored = server.get().json
        rows = server.call("GET", "/v1/history")
        why = server.call("GET", f"/v1/events/{kept}/explain")["why"]
    with serving(tmp_path) as server:
        again = server.get().json

    assert restored["DocumentIncarnation"] > last_seen
    assert restored["Events"] == before
    assert again == restored
    assert "incarnations were raised" in str(rows)
    assert "(its directory was copied or unpacked), perhaps changes to this event too" in why
    assert "the database was restored from a backup" in (tmp_path / "log").read_text()


VMS = addresses(10)
DUE = """
    UPDATE events SET not_before = (strftime('%s', 'now') + 2) * 1000000 WHERE id = ?
"""
WAKE = """
    UPDATE scopes
    SET next_wake = events.not_before, incarnation = incarnation + 1, revision = revision + 1
    FROM events WHERE events.id = ? AND scopes.id = events.scope_id
"""
STARTS = "SELECT event_id FROM history WHERE action = 'started'"


def test_after_an_old_copy_of_the_data_directory_incarnations_are_higher_than_ever(
    tmp_path: Path,
) -> None:
    """I1, I5, I7, I14, I23, F17: the server is down while its files are copied, and brought back.
    VMs poll before, meanwhile and afterwards.
    """
    folder, backup = tmp_path / "a" / "state", tmp_path / "backup"

    # Any: rows of a query, as the ledger asks it.
    def ask(query: str, *values: object) -> list[Any]:
        with contextlib.closing(sqlite3.connect(folder / "forewarned.db")) as opened, opened:
            return opened.execute(query, values).fetchall()

    def starts(event_id: str) -> int:
        return ask(STARTS).count((event_id,))

    with (
        running_nodes(tmp_path, "", vms={**VMS, **LOAD}, names=("a",)) as nodes,
        polled([node := nodes["a"]], VMS) as watch,
    ):
        with under_load([node], ask) as load:
            due, approved = (_scheduled(node, vm) for vm in ("vm-1", "vm-2"))
        node.stop()
        ask(DUE, due)
        ask(WAKE, due)
        [(due_at,)] = ask("SELECT not_before FROM events WHERE id = ?", due)
        shutil.copytree(folder, backup)
        node.start()
        for _ in range(5):
            requests.cancel(node, _scheduled(node, "vm-0"))
        _scheduled(node, "vm-0")
        answer = requests.approve_patiently(node, approved, address=VMS["vm-2"])
        wait_until(lambda: starts(due) == 1, within=20)
        watch.wait_for_rounds(2)
        highest = watch.vms[0].seen[-1].incarnation

        node.stop()
        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
        is_forgotten = starts(due) == starts(approved) == 0
        node.start()
        wait_until(lambda: starts(due) == 1, within=20)
        load.check()
        with under_load([node], ask):
            watch.wait_for_rounds(2)
        shown = requests.poll(node, address=VMS["vm-0"])
        early = starts(approved)
        again = requests.approve_patiently(node, approved, address=VMS["vm-2"])
        found = [starts(event_id) for event_id in (due, approved)]
        [(started_at,)] = ask("SELECT started_at FROM events WHERE id = ?", due)

    assert answer.status == 200
    assert is_forgotten
    assert shown.json["Events"] == []
    assert shown.json["DocumentIncarnation"] > highest
    assert started_at > due_at
    assert early == 0
    assert again.status == 200
    assert found == [1, 1]


def _scheduled(node: Node, vm: str) -> str:
    event_id: str = requests.schedule(node, vm).json["events"][0]["event_id"]
    return event_id
