"""What a real server writes to its log while a person moves its clock."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from forewarned.clock import wall_clock
from tests.end_to_end.server_process import serving

_LINE: Final = re.compile(r"(?P<at>\S+ \S+)Z (?:\(clock (?P<clock>\S+ \S+)Z\) )?\w+ +(?P<text>.*)")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_log_has_real_time_the_servers_beside_it_and_each_listener_once(tmp_path: Path) -> None:
    began = wall_clock().replace(microsecond=0)
    with serving(tmp_path, "--workers", "1") as server:
        server.command("clock", "step", "1h")
        server.command("schedule", "reboot", "--vm", "web")
    ended = wall_clock()

    lines = (tmp_path / "log").read_text().splitlines()
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    assert len(found) == len(lines)
    assert all(began <= instant(line["at"]) <= ended for line in found)
    [started] = [line for line in found if line["text"].startswith("started ")]
    assert instant(started["clock"]) - began >= timedelta(hours=1)
    opened = [line["text"].split("  ")[0] for line in found if "listener open" in line["text"]]
    assert sorted(opened) == [
        "arm listener open",
        "control listener open",
        "metadata listener open",
    ]
    assert "server process" not in "".join(lines)


def test_every_process_writes_one_object_a_line_if_that_is_wanted(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "1", "--log-format", "json") as server:
        server.command("schedule", "reboot", "--vm", "web")

    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    messages = {line["message"] for line in lines}
    # Of the supervisor, the writer and the poller.
    assert {"a process is ready", "control listener open", "metadata listener open"} <= messages
    assert all({"at", "level", "message"} <= line.keys() for line in lines)
