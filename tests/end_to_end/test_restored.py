"""F17: yesterday's backup of a real server is brought back, and its VMs go on reading."""

import shutil
from pathlib import Path

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
    assert "(its directory was copied or unpacked), also of this event" in why
    assert "the database was restored from a backup" in (tmp_path / "log").read_text()
