"""A real server process, its three listeners, and the CLI beside it."""

import contextlib
import json
import os
import re
import signal
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from forewarned.cli import cli
from tests import preloaded
from tests.preloaded import Process, Running

METADATA: Final = {"Metadata": "true"}
DOCUMENT: Final = "/metadata/scheduledevents?api-version=2020-07-01"
WORKERS: Final = (
    pytest.param("1", id="two processes"),
    pytest.param("0", id="one process", marks=pytest.mark.thorough),
)
"""Values of `--workers`, for tests of what must be the same in both shapes of a server."""
WRITER_WORKERS: Final = (
    pytest.param("0", id="one process"),
    pytest.param("1", id="two processes", marks=pytest.mark.thorough),
)
"""The same for what concerns no poller."""

_READY: Final = re.compile(r"^\s*(metadata|control|arm)\s+https?://(\S+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # JSON is whatever it is; each test says what it expects
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    pid: int
    metadata: str
    """HOST:PORT"""
    control: str
    arm: str = ""
    """Empty where it is off."""
    data: Path

    def get(self, path: str = DOCUMENT, *, source: str | None = None, **headers: str) -> Answer:
        return self._ask("GET", path, None, source, headers)

    def approve(self, *event_ids: str, path: str = DOCUMENT, source: str | None = None) -> Answer:
        body = json.dumps({"StartRequests": [{"EventId": event_id} for event_id in event_ids]})
        return self._ask("POST", path, body, source, {})

    def command(self, *words: str) -> Any:
        """Run the CLI with --json, and return what it printed."""
        return _command(*words, FOREWARNED_CONTROL=f"http://{self.control}")

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Ask the control listener, which is quicker than starting the CLI."""
        connection = HTTPConnection(self.control, timeout=60)
        with contextlib.closing(connection):
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        assert response.status < 400, answer
        return json.loads(answer)

    def ask_arm(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Over TLS, trusting nothing but the server's own authority."""
        trusting = ssl.create_default_context(cafile=str(self.data / "arm-ca.pem"))
        connection = HTTPSConnection(self.arm, timeout=60, context=trusting)
        with contextlib.closing(connection):
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"} | headers)
            response = connection.getresponse()
            return Answer(
                status=response.status,
                headers={name.lower(): value for name, value in response.getheaders()},
                body=response.read(),
            )

    def _ask(
        self, method: str, path: str, body: str | None, source: str | None, extra: dict[str, str]
    ) -> Answer:
        # Host and port apart: a source address goes with the connection, not with the request.
        where = urlsplit(f"http://{self.metadata}")
        connection = HTTPConnection(
            where.hostname or "",
            where.port,
            timeout=60,
            source_address=None if source is None else (source, 0),
        )
        with contextlib.closing(connection):
            connection.request(method, path, body, METADATA | extra)
            response = connection.getresponse()
            return Answer(
                status=response.status,
                headers={name.lower(): value for name, value in response.getheaders()},
                body=response.read(),
            )


def environment(**more: str) -> dict[str, str]:
    """This process's environment, without settings of the person who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOREWARNED_")}
    return kept | {"NO_COLOR": "1"} | more


def local_command(server: Server, *words: str) -> Any:  # JSON, which tests look into
    """A command on the server's own machine, beside its store, where nothing says how to reach it.

    For those that need no server, such as `token` and `ca`.
    """
    return _command(*words, "--data", str(server.data))


def _command(*words: str, **variables: str) -> Any:  # as above
    """In this process: to start another takes longer than most commands do."""
    theirs = {name: None for name in os.environ if name.startswith("FOREWARNED_")}
    runner = CliRunner(env=theirs | {"NO_COLOR": "1"} | variables)
    done = runner.invoke(cli, [*words, "--json"], prog_name="forewarned")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def start(folder: Path, *flags: str, namespace: str | None = None) -> Process:
    """One process, unless `flags` say otherwise: two take twice the time to start."""
    anywhere = [word for listener in ("metadata", "control", "arm") for word in _anywhere(listener)]
    defaults = (*anywhere, "--clock", "paused", "--workers", "0", "--data", str(folder / "state"))
    with (folder / "log").open("a") as log:
        return preloaded.start(
            *("serve", *defaults, *flags),
            folder=folder,
            environment=environment(),
            errors=log,
            namespace=namespace,
        )


def _anywhere(listener: str) -> tuple[str, str]:
    return (f"--{listener}", "127.0.0.1:0")


def ready(running: Running, folder: Path) -> Server:
    """Wait until the server says where it listens."""
    assert running.stdout is not None
    found: dict[str, str] = {}
    for line in running.stdout:
        if match := _READY.match(line):
            found[match[1]] = match[2]
        if line.startswith("Stop with"):
            return Server(pid=running.pid, data=folder / "state", **found)
    running.wait()
    raise AssertionError(f"the server did not start: {(folder / 'log').read_text()}")


@contextlib.contextmanager
def serving(folder: Path, *flags: str) -> Iterator[Server]:
    with start(folder, *flags) as running:
        try:
            yield ready(running, folder)
        finally:
            running.send_signal(signal.SIGTERM)
