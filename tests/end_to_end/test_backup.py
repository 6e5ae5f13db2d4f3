"""F17: a server is backed up under load, and the backup is restored while VMs go on reading."""

import threading
from pathlib import Path

from tests.cli.served import invoke
from tests.end_to_end.server_process import Server, serving

REBOOT = {"type": "Reboot", "resources": ["web"]}


def test_i7_i23_a_backup_under_load_has_all_that_was_confirmed_and_raises_incarnations(
    tmp_path: Path,
) -> None:
    backup, confirmed = tmp_path / "backup", list[str]()
    enough, stop = threading.Event(), threading.Event()

    def schedule(server: Server) -> None:
        while not stop.is_set():
            [event] = server.call("POST", "/v1/events", REBOOT)["events"]
            confirmed.append(event["event_id"])
            if len(confirmed) >= 20:
                enough.set()
            server.call("POST", f"/v1/events/{event['event_id']}/cancel", {})

    with serving(tmp_path) as server:
        server.get()
        load = threading.Thread(target=schedule, args=(server,))
        load.start()
        try:
            assert enough.wait(60)
            before = list(confirmed)
            made = invoke("backup", str(backup), "--data", str(server.data))
            during = len(confirmed)
        finally:
            stop.set()
            load.join()
        last_seen = server.get().json["DocumentIncarnation"]
    server.data.rename(tmp_path / "lost")
    restored = invoke("restore", str(backup), "--data", str(server.data))
    with serving(tmp_path) as server:
        document = server.get().json
        events = server.call("GET", "/v1/events?status=all")["events"]
        history = str(server.call("GET", "/v1/history"))

    assert made.exit_code == 0, made.stderr
    assert restored.exit_code == 0, restored.stderr
    assert during > len(before)
    assert set(before) <= {event["event_id"] for event in events}
    assert document["DocumentIncarnation"] > last_seen
    assert "store_restored" in history
