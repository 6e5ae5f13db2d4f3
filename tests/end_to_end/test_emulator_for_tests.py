"""One emulator for many tests: found by its ready file, and reset between them."""

import json
import threading
from pathlib import Path
from urllib.request import urlopen

from tests.end_to_end.server_process import DOCUMENT, Answer, Server, serving


def test_the_ready_file_names_ports_that_answer(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    for workers in ("0", "1"):
        with serving(tmp_path, "--workers", workers, "--ready-file", str(path)) as server:
            told = json.loads(path.read_text())
            health = server.call("GET", "/v1/health")
            arm = server.ask_arm("GET", "/metadata/endpoints?api-version=2015-01-01")

            assert told == {
                "pid": server.pid,
                "version": health["version"],
                "mode": "emulator",
                "metadata": f"http://{server.metadata}",
                "control": f"http://{server.control}",
                "arm": f"https://{server.arm}",
                "data": str(tmp_path / "state"),
            }
            assert arm.status == 200
            assert server.get().status == 200
            ports = {
                address.rpartition(":")[2]
                for address in (server.metadata, server.control, server.arm)
            }
            assert len(ports - {"0"}) == 3
        assert not path.exists()


def test_a_reset_reaches_the_vms_and_those_that_wait_read_again(tmp_path: Path) -> None:
    """I7."""
    with serving(tmp_path) as server:
        first = server.get().json["DocumentIncarnation"]
        [event] = server.call("POST", "/v1/events", {"type": "Reboot", "resources": ["web"]})[
            "events"
        ]
        shown = server.get().json
        assert [each["EventId"] for each in shown["Events"]] == [event["event_id"]]
        answers: list[Answer] = []

        server.call("POST", "/v1/reset")
        empty = server.get().json
        waiting = threading.Thread(
            target=lambda: answers.append(
                server.get(f"{DOCUMENT}&wait=60s&last-incarnation={empty['DocumentIncarnation']}")
            )
        )
        waiting.start()
        while not _is_waiting(server):
            pass
        server.call("POST", "/v1/reset")
        waiting.join(timeout=30)

        assert empty == {"DocumentIncarnation": shown["DocumentIncarnation"] + 1, "Events": []}
        assert first < shown["DocumentIncarnation"]
        assert [answer.json for answer in answers] == [empty]


def _is_waiting(server: Server) -> bool:
    with urlopen(f"http://{server.control}/metrics", timeout=30) as answer:
        return b"forewarned_waits_total 1.0" in answer.read()
