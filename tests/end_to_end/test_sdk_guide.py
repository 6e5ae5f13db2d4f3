"""The programs of "Handle events", the README's ten lines and the example, run as they stand."""

import contextlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from forewarned import client
from tests.end_to_end.server_process import Server, environment, serving
from tests.end_to_end.transcripts import programs

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "handle-events.md"
GUIDE: Final = programs(PAGE.read_text())
README: Final = programs((ROOT / "README.md").read_text())
EXAMPLE: Final = ROOT / "examples" / "run_around.py"


class Program:
    def __init__(self, running: "subprocess.Popen[str]") -> None:
        self._running = running

    def line(self) -> str:
        assert self._running.stdout is not None
        return self._running.stdout.readline().rstrip("\n")

    def terminate(self) -> None:
        self._running.terminate()

    def rest(self) -> list[str]:
        """Whatever it prints until it ends by itself."""
        out, _ = self._running.communicate(timeout=120)
        assert self._running.returncode == 0
        return out.splitlines()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("guide")) as server:
        server.get()  # only scopes that a VM reads get notice
        yield server


@pytest.fixture(autouse=True)
def calm(server: Server) -> Iterator[None]:
    """Nothing of one program's events is left for the next."""
    yield
    for event in server.call("GET", "/v1/events")["events"]:
        with contextlib.suppress(AssertionError):
            server.call("POST", f"/v1/events/{event['event_id']}/cancel")
    server.call("POST", "/v1/clock/step", {"by": "1h"})


@contextlib.contextmanager
def running(server: Server, *command: str) -> Iterator[Program]:
    with subprocess.Popen(
        [sys.executable, *command],
        env=environment(FOREWARNED_ENDPOINT=f"http://{server.metadata}"),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Program(process)
        finally:
            process.terminate()


def schedule(server: Server, type: str) -> None:
    server.call("POST", "/v1/events", {"type": type, "resources": ["web"]})


def complete(server: Server) -> None:
    server.call("POST", "/v1/clock/step", {"by": "10m"})


def test_the_readmes_ten_lines_drain_approve_and_resume(server: Server) -> None:
    [(_, text)] = README.items()
    assert len(text.splitlines()) <= 10

    with running(server, "-c", text) as program:
        schedule(server, "Reboot")
        assert program.line() == "draining before Reboot"
        wait_started(server)
        complete(server)
        # Whether the program was quick enough to see it Started is chance.
        assert re.fullmatch("resuming after Reboot (completed|unknown)", program.line())


def test_the_guides_handler_prepares_approves_and_recovers(server: Server) -> None:
    with running(server, "-c", GUIDE["handler.py"]) as program:
        schedule(server, "Redeploy")
        assert re.fullmatch(r"Redeploy not before \d{4}-.*\+00:00", program.line())
        assert program.line() == "draining: finishing current work"
        wait_started(server)
        complete(server)
        assert program.line() == "resuming"


def test_a_look_tells_who_and_what(server: Server) -> None:
    schedule(server, "Freeze")

    with running(server, "-c", GUIDE["look.py"]) as program:
        lines = program.rest()

    assert lines[:2] == ["this is web", "Freeze Scheduled web"]
    assert re.fullmatch(r"incarnation \d+", lines[2])


def test_the_guides_async_handler_follows_to_the_end(server: Server) -> None:
    with running(server, "-c", GUIDE["follow.py"]) as program:
        schedule(server, "Reboot")
        assert program.line() == "appeared Reboot"
        assert program.line() == "started Reboot"
        complete(server)
        assert program.rest() == ["gone Reboot", "completed"]


def test_sigterm_stops_the_guides_handler_in_the_middle_of_a_long_poll(server: Server) -> None:
    with running(server, "-c", GUIDE["stopping.py"]) as program:
        schedule(server, "Reboot")
        assert program.line() == "appeared Reboot"
        program.terminate()
        assert program.rest() == ["stopped"]


def test_failures_are_told_as_the_guide_says(server: Server) -> None:
    with running(server, "-c", GUIDE["failing.py"]) as program:
        lines = program.rest()

    assert lines == [
        "400 event C7061BAC-AFDC-4513-B24B-AA5F13A16123 was not found",
        "UnavailableError",
    ]


def test_an_event_has_the_fields_that_the_guide_shows(server: Server) -> None:
    schedule(server, "Reboot")

    with running(server, "-c", GUIDE["fields.py"]) as program:
        lines = program.rest()

    assert lines == [
        "True",
        "Reboot True",
        "Scheduled False",
        "('web',) True",
        "UTC",
        "User None VirtualMachine",
        "{}",
    ]


def test_every_program_of_the_guide_is_run() -> None:
    source = Path(__file__).read_text()

    assert set(GUIDE) == set(re.findall(r'GUIDE\["([\w.]+)"\]', source))
    assert len(GUIDE) == PAGE.read_text().count("```python")


def test_the_guide_names_all_there_is() -> None:
    page = PAGE.read_text()
    methods = {name for name in vars(client.ScheduledEvents) if not name.startswith("_")}
    arguments = {
        name
        for method in (client.ScheduledEvents.__init__, client.ScheduledEvents.watch)
        for name in inspect.signature(method).parameters
        if name != "self"
    }
    # Values that callers need not name: what methods return, and what fields are.
    unnamed = {"Change", "Document", "Event", "EventSource", "EventStatus"}
    named = set(re.findall(r"\w+", page))

    assert (methods | arguments | set(client.__all__)) - named <= unnamed


def test_the_example_runs_commands_around_an_interruption(server: Server, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text("#!/bin/sh\necho before $EVENT_TYPE\n")
    after.write_text("#!/bin/sh\necho after $EVENT_TYPE $EVENT_ENDING\n")
    before.chmod(0o755)
    after.chmod(0o755)

    with running(server, str(EXAMPLE), str(before), str(after)) as program:
        schedule(server, "Reboot")
        assert program.line() == "before Reboot"
        wait_started(server)
        complete(server)
        assert re.fullmatch("after Reboot (completed|unknown)", program.line())


def wait_started(server: Server) -> None:
    """Held by the server until the program's approval has changed the document."""
    document = server.get()
    while '"Started"' not in document.body.decode():
        incarnation = document.json["DocumentIncarnation"]
        path = f"/metadata/scheduledevents?api-version=2020-07-01&wait=60s&last-incarnation={incarnation}"
        document = server.get(path)
