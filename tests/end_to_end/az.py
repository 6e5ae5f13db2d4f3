"""The unmodified az CLI, logged in to a server of ours, able to reach nothing else."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, Final

from tests.end_to_end.server_process import Server, environment, serving

AZ: Final = Path(__file__).parents[2] / ".venv-az" / "bin"
PATIENCE: Final = 120
"""Seconds until a command of az counts as stuck: far more than any takes, even on a busy machine."""

GROUP: Final = "work"
"""The resource group that tests share."""

_SUBSCRIPTION: Final = "/subscriptions/00000000-0000-0000-0000-000000000000"
_VERSION: Final = "api-version=2024-07-01"
# Nothing listens there: what asks for any other machine fails at once, instead of finding it.
_NOWHERE: Final = "http://127.0.0.1:9"
_ALONE: Final = dict.fromkeys(
    ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), _NOWHERE
) | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What az shows to a person whose command failed."""

    code: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Azure:
    """A server, and az as it is after `eval "$(forewarned env az)"`."""

    server: Server
    variables: dict[str, str]

    def az(self, *words: str) -> Any:
        """Run a command that must succeed, and return the JSON it printed, if any."""
        running = self._started(words)
        return _result(running, words)

    def refused(self, *words: str) -> Refusal:
        """Run a command that must fail."""
        running = self._started(words)
        printed, errors = running.communicate(timeout=PATIENCE)
        assert running.returncode, printed
        return Refusal(code=running.returncode, text=errors)

    @contextlib.contextmanager
    def waiting(self, *words: str, events: int = 1) -> Iterator["Waiting"]:
        """Run a command that has to wait for events; inside, that many are on show."""
        with changes(self.server) as told, self._started(words) as running:
            try:
                for _ in range(events):
                    next_change(told, "scheduled")
                yield Waiting(running, words)
            finally:
                running.kill()

    def put(self, path: str, body: object) -> None:
        """Declare something as az would, but without starting it, which takes seconds."""
        answer = self.server.ask_arm("PUT", f"{_SUBSCRIPTION}{path}?{_VERSION}", body)
        assert answer.status < 300, answer.body

    def document(self, vm: str) -> Any:
        return self.server.get(_path(vm)).json

    def approve(self, vm: str, *event_ids: str) -> None:
        answer = self.server.approve(*event_ids, path=_path(vm))
        assert answer.status == 200, answer.body

    def step(self, span: str) -> None:
        self.server.call("POST", "/v1/clock/step", {"by": span})

    def _started(self, words: tuple[str, ...]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [AZ / "az", *words, "--output", "json"],
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """A command of az that has not returned yet."""

    running: "subprocess.Popen[str]"
    words: tuple[str, ...]

    @property
    def has_returned(self) -> bool:
        return self.running.poll() is not None

    def result(self) -> Any:
        """What it printed, once it is over."""
        return _result(self.running, self.words)


def _result(running: "subprocess.Popen[str]", words: tuple[str, ...]) -> Any:
    printed, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, f"az {' '.join(words)}: {errors}"
    return json.loads(printed) if printed.strip() else None


def _path(vm: str) -> str:
    return f"/vm/{vm}/metadata/scheduledevents?api-version=2020-07-01"


def variables(home: Path, **more: str) -> dict[str, str]:
    """For a terminal with `forewarned` and `az` on its PATH, and nothing of this machine's user."""
    assert (AZ / "az").exists(), "there is no az to test with: `make az` installs it"
    home.mkdir(exist_ok=True)
    kept = environment(**_ALONE, HOME=str(home))
    for name in [name for name in kept if name.startswith(("AZURE_", "ARM_"))]:
        del kept[name]
    # Ours first: az has a `python` beside it, too.
    ours = os.pathsep.join([str(Path(sys.executable).parent), str(AZ)])
    # az is compiled when it is first run, and its compiler has warnings that no user sees later.
    path = {"PATH": f"{ours}{os.pathsep}{kept['PATH']}", "PYTHONWARNINGS": "ignore"}
    return kept | path | more


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Azure]:
    """A fresh server with its clock paused, and az logged in to it."""
    with serving(folder) as server:
        yield Azure(server=server, variables=exported("az", folder, server))


def exported(client: str, folder: Path, server: Server) -> dict[str, str]:
    """The variables of a shell after `eval "$(forewarned env CLIENT)"`."""
    done = subprocess.run(
        ["bash", "-c", f'eval "$(forewarned env {client})" >&2 && env -0'],
        env=variables(folder / "home", FOREWARNED_CONTROL=f"http://{server.control}"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


@contextlib.contextmanager
def changes(server: Server) -> Iterator[HTTPResponse]:
    """The stream of changes, from here on."""
    connection = HTTPConnection(server.control, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/changes")
        told = connection.getresponse()
        next_change(told, "hello")
        yield told


def next_change(told: HTTPResponse, action: str) -> Any:
    """Wait for a change of that name, past any other."""
    for line in told:
        if line.strip() == f"event: {action}".encode():
            return json.loads(told.readline().removeprefix(b"data: "))
    raise AssertionError(f"the server ended the stream before anything was {action}")
