"""Watching a real server."""

import asyncio
import json
import re
import signal
import subprocess
import sys

from tests.builders import event_id
from tests.cli.served import PLAIN, Served

ONE, TWO = event_id(1), event_id(2)


async def approve_while_watched(served: Served) -> None:
    """What a watcher is to see; then the server ends the stream, so that watching ends."""
    changes = served.steered.services.changes
    while not changes.watchers:  # noqa: ASYNC110  # nobody tells of a new watcher
        await asyncio.sleep(0)
    await served.steered.post(f"/v1/events/{ONE}/approve")
    await served.steered.schedule("Freeze", "report")
    changes.close()


def test_lines_tell_what_is_open_and_then_each_change(served: Served) -> None:
    served.schedule("web")
    served.start(served.steered.switch_on("report")).result()
    script = served.start(approve_while_watched(served))

    result = served.run("events", "--watch")

    script.result()
    assert result.stdout.splitlines() == [
        f"2026-01-05 12:00:00 scheduled Reboot {ONE} web",
        f"2026-01-05 12:00:00 approved Reboot {ONE} web",
        f"2026-01-05 12:00:00 started Reboot {ONE} web (approved)",
        f"2026-01-05 12:00:00 scheduled Freeze {TWO} report",
    ]
    assert result.exit_code == 3
    assert "the server is stopping" in result.stderr


def test_json_lines_are_the_messages_of_the_stream(served: Served) -> None:
    served.schedule("web")
    script = served.start(approve_while_watched(served))

    result = served.run("events", "--watch", "--json", "--vm", "web")

    script.result()
    hello, *changes = map(json.loads, result.stdout.splitlines())
    assert [event["event_id"] for event in hello["events"]] == [ONE]
    assert [change["action"] for change in changes] == ["approved", "started"]


def test_a_terminal_shows_a_table_that_follows(served: Served) -> None:
    served.schedule("web")
    script = served.start(approve_while_watched(served))

    result = served.run("events", "--watch", FORCE_COLOR="1", TERM="xterm")

    script.result()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", result.stdout)
    shown = " ".join(plain.rpartition("12:00:00 UTC")[2].split())
    assert "Reboot Started" in shown
    assert f"started Reboot {ONE[:8]} web (approved)" in shown


def test_ctrl_c_is_how_watching_is_meant_to_end(served: Served) -> None:
    served.schedule("web")
    command = [sys.executable, "-m", "notbefore", "events", "--watch"]

    with subprocess.Popen(
        command,
        env={**PLAIN, "NOTBEFORE_CONTROL": served.address, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate()

    assert ONE in first
    assert (watching.returncode, errors) == (0, "")
