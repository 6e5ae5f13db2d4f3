"""`forewarned record` against a real server, killed in the middle, and its file played back."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.end_to_end.server_process import Server, environment, serving


class Recorder:
    """A recorder in a process of its own."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self.running = running

    def until(self, words: str) -> str:
        """Wait for the line with these words."""
        assert self.running.stdout is not None
        seen = []
        for line in self.running.stdout:
            if words in line:
                return line
            seen.append(line)
        raise AssertionError(f"it never said {words!r}: {''.join(seen)}")


@contextlib.contextmanager
def recording(server: Server, path: Path, *flags: str) -> Iterator[Recorder]:
    program = [sys.executable, "-u", "-m", "forewarned", "record"]
    with subprocess.Popen(
        [*program, f"http://{server.metadata}", "--to", str(path), "--every", "200ms", *flags],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield Recorder(running)
        finally:
            running.send_signal(signal.SIGTERM)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_recording_has_every_change_and_failure_goes_on_after_a_kill_and_is_played_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events.jsonl"
    with serving(tmp_path, "--arm", "off", "--workers", "0") as server:
        with recording(server, path) as first:
            first.until("incarnation 1: no events")
            server.command("schedule", "reboot", "--vm", "web")
            first.until("incarnation 2: Reboot Scheduled web")
            first.running.kill()
        server.call("POST", "/v1/clock/step", {"by": "15m"})
        with recording(server, path) as second:
            second.until("incarnation 3: Reboot Started web")
            server.call("POST", "/v1/faults", {"kind": "status", "status": 503})
            second.until("503")
            server.call("DELETE", "/v1/faults")
            second.until("incarnation 3: Reboot Started web")

    found = lines(path)
    assert [line["entry"] for line in found] == [
        *("began", "answered", "answered"),
        *("began", "answered", "answered", "answered", "stopped"),
    ]
    assert [line.get("status") for line in found if "status" in line] == [200, 200, 200, 503, 200]
    assert {line["vm"] for line in found if line["entry"] == "began"} == {"web"}
    assert json.loads(found[2]["body"])["Events"][0]["Resources"] == ["web"]
    assert second.running.returncode == 0
    assert _played_back(tmp_path, path) == [
        (200, 1, None),
        (200, 2, "Scheduled"),
        (200, 3, "Started"),
        (503, None, None),
        (200, 3, "Started"),
    ]


def _played_back(folder: Path, path: Path) -> list[tuple[int, int | None, str | None]]:
    """What a VM reads as time passes: status, incarnation, status of the first event."""
    read = []
    count = _spread(path)
    with serving(folder, "--arm", "off", "--replay", str(path)) as server:
        for _ in range(count):
            answer = server.get()
            body = answer.json if answer.status == 200 else {}
            events = body.get("Events") or [{}]
            read.append(
                (answer.status, body.get("DocumentIncarnation"), events[0].get("EventStatus"))
            )
            server.call("POST", "/v1/clock/step", {"by": "1m"})
    return read


def _spread(path: Path) -> int:
    """Have a minute between two answers: virtual time stops on whole seconds, and a test can't."""
    minute, written = 0, []
    for line in lines(path):
        written.append(json.dumps(line | {"at": f"2026-01-01T12:{minute:02}:00Z"}) + "\n")
        minute += line["entry"] == "answered"
    path.write_text("".join(written))
    return minute
