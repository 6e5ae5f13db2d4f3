"""Watching a real server."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.builders import event_id
from tests.cli.interrupts import interruptible
from tests.cli.served import PLAIN, Served

ONE, TWO = event_id(1), event_id(2)


class Watcher:
    """The command in a process of its own, read line by line."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self._running = running

    def line(self) -> str:
        assert self._running.stdout is not None
        return self._running.stdout.readline().rstrip("\n")

    def interrupt(self) -> None:
        self._running.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """The exit code, and what was said on stderr."""
        _, errors = self._running.communicate()
        return self._running.returncode, errors


@contextmanager
def watching(served: Served, *words: str, reconnect: str = "0s") -> Iterator[Watcher]:
    with interruptible():
        started = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "forewarned",
                "events",
                "--watch",
                "--reconnect",
                reconnect,
                *words,
            ],
            env={**PLAIN, "FOREWARNED_CONTROL": served.address},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with started as running:
        try:
            yield Watcher(running)
        finally:
            running.kill()


def drop(served: Served) -> None:
    """End the streams, as a server does that restarts."""

    async def end() -> None:
        changes = served.steered.services.changes
        changes.drop_all("the store is unavailable", told=changes.told)

    served.start(end()).result()


def stop(served: Served) -> None:
    served.loop.call_soon_threadsafe(served.steered.services.changes.close)


def test_lines_tell_what_is_open_and_then_each_change(served: Served) -> None:
    served.schedule("web")

    with watching(served) as watcher:
        first = watcher.line()
        served.run("approve", ONE)
        served.schedule("report", type="Freeze")
        lines = [watcher.line() for _ in range(4)]
        stop(served)
        exit_code, errors = watcher.end()

    assert first == f"2026-01-05 12:00:00 Reboot scheduled {ONE} web"
    assert lines == [
        f"2026-01-05 12:00:00 Reboot approved {ONE} web",
        f"2026-01-05 12:00:00 Reboot started {ONE} web (approved)",
        "2026-01-05 12:00:00 scope vm/report activated",
        f"2026-01-05 12:00:00 Freeze scheduled {TWO} report",
    ]
    assert exit_code == 3
    assert "the server is stopping" in errors


def test_json_lines_are_the_messages_of_the_stream(served: Served) -> None:
    served.schedule("web")

    with watching(served, "--json", "--vm", "web") as watcher:
        hello = json.loads(watcher.line())
        served.schedule("report")
        served.run("approve", ONE)
        changes = [json.loads(watcher.line()) for _ in range(2)]

    assert [event["event_id"] for event in hello["events"]] == [ONE]
    assert [change["action"] for change in changes] == ["approved", "started"]


def test_ctrl_c_is_how_watching_is_meant_to_end(served: Served) -> None:
    served.schedule("web")

    with watching(served) as watcher:
        watcher.line()
        watcher.interrupt()

        assert watcher.end() == (0, "")


def test_a_terminal_shows_a_table_that_follows(served: Served) -> None:
    served.schedule("web")
    script = served.start(_approve_while_watched(served))

    result = served.run("events", "--watch", "--reconnect", "1s", FORCE_COLOR="1", TERM="xterm")

    script.result()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", result.stdout)
    shown = " ".join(plain.rpartition("12:00:00 UTC")[2].split())
    assert "Reboot Started" in shown
    assert f"Reboot started {ONE[:8]} web (approved)" in shown


async def _approve_while_watched(served: Served) -> None:
    changes = served.steered.services.changes
    while not changes.watchers:  # noqa: ASYNC110  # nobody tells of a new watcher
        await asyncio.sleep(0)
    try:
        await served.steered.post(f"/v1/events/{ONE}/approve")
    finally:
        # Watching ends when the server ends it, and the test with it, come what may.
        changes.close()


def test_a_stream_that_breaks_off_is_continued_with_what_was_missed(served: Served) -> None:
    served.schedule("web")

    with watching(served, reconnect="1m") as watcher:
        watcher.line()
        drop(served)
        served.run("approve", ONE)
        missed = [watcher.line() for _ in range(2)]
        served.schedule("report", type="Freeze")
        live = [watcher.line() for _ in range(2)]

    assert [line.split()[2:4] for line in (*missed, *live)] == [
        *(["Reboot", "approved"], ["Reboot", "started"]),
        *(["scope", "vm/report"], ["Freeze", "scheduled"]),
    ]
