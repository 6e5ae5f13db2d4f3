"""Agents as processes of their own, and hooks that write down each of their runs."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from tests import preloaded
from tests.end_to_end.server_process import Server, environment
from tests.preloaded import Running

MORTAL: Final = Path(__file__).with_name("mortal_agent.py")
PATIENCE: Final = 60.0
"""Seconds until something that has to happen has failed to."""

_LISTENS: Final = re.compile(r'agent is listening\s+address="([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    running: Running
    folder: Path
    listens: str
    """HOST:PORT"""

    def get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection(self.listens, timeout=20)
        with contextlib.closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def status(self) -> Any:  # JSON, which tests look into
        return json.loads(self.get("/status")[1])

    def event(self, event_id: str) -> Any:
        """What it says of an event; None while it has not seen it."""
        events = [e for e in self.status()["events"] if e["event_id"] == event_id]
        return events[0] if events else None

    def stage_of(self, event_id: str) -> str | None:
        event = self.event(event_id)
        return None if event is None else str(event["stage"])

    def until(self, event_id: str, stage: str) -> Any:
        until(lambda: self.stage_of(event_id) == stage, f"{event_id} to be {stage}: {self.log()}")
        return self.event(event_id)

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def stop(self) -> int:
        self.running.send_signal(signal.SIGTERM)
        return self.running.wait(PATIENCE)

    def kill(self) -> None:
        self.running.kill()
        self.running.wait(PATIENCE)


def until(holds: Callable[[], object], what: str) -> None:
    """Look often until it holds. Nothing tells a test when another process has got somewhere."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.05)):
        if holds():
            return
        pause.wait(0.05)
    raise AssertionError(f"waited in vain for {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    """Where the hooks of one agent write each run down: `prepare drain`."""

    path: Path

    @property
    def runs(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.runs)

    def script(self, name: str, then: str = "") -> list[str]:
        """A command that notes its phase, and goes on as told."""
        line = f'echo "$FOREWARNED_PHASE {name}" >> {self.path}; {then}'
        return ["/bin/sh", "-c", line]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFile:
    """An agent's file with command hooks, each as `name: what its prepare does besides noting`."""

    notebook: Notebook
    hooks: dict[str, str]
    more: dict[str, dict[str, object]] = field(default_factory=dict)
    """Further fields of hooks, by name."""
    prepare: Sequence[str] = ()
    recover: Sequence[str] = ()
    approve: str = "when-ready"
    leader: str = "each"
    agent: str = ""
    """Further lines of the table."""

    def text(self, state: Path) -> str:
        lines = ["[agent]", f"state = {_toml(str(state))}"]
        lines += ['listen = "127.0.0.1:0"', 'poll = "100ms"', self.agent]
        for name, then in self.hooks.items():
            fields: dict[str, object] = {
                "kind": "command",
                "argv": self.notebook.script(name, then),
                "undo_argv": self.notebook.script(name),
                "timeout": "20s",
            } | self.more.get(name, {})
            lines += [f"[hooks.{name}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in fields.items()]
        lines += ["[[rules]]", 'name = "every event"']
        lines += [
            f"prepare = {_toml(list(self.prepare))}",
            f"recover = {_toml(list(self.recover))}",
        ]
        lines += [f"approve = {_toml(self.approve)}", f"leader = {_toml(self.leader)}"]
        return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    # JSON's strings, numbers, booleans and lists are TOML's as well.
    return json.dumps(value)


def start(
    folder: Path,
    text: str,
    endpoint: str | None,
    *,
    before: Sequence[str] = (),
    mortal: Sequence[str] = (),
) -> Running:
    """`before` is what runs the agent, such as another namespace.

    `mortal`: how and when it dies, and its boot id, as mortal_agent.py has them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "agent.toml"
    file.write_text(text)
    variables = {} if endpoint is None else {"FOREWARNED_ENDPOINT": endpoint}
    variables = environment(PYTHONPATH=os.pathsep.join(sys.path), **variables)
    words = ("agent", "run", "--config", str(file))
    with (folder / "agent.log").open("a") as log:
        if not before:
            return preloaded.start(
                *((*mortal, str(file)) if mortal else words),
                folder=Path.cwd(),
                environment=variables,
                output=log,
                errors=log,
                program=MORTAL if mortal else None,
            )
        return subprocess.Popen(
            [*before, sys.executable, "-m", "forewarned", *words],
            env=variables,
            stdout=log,
            stderr=log,
            text=True,
        )


def listening(running: Running, folder: Path) -> Agent:
    log = folder / "agent.log"

    def is_there() -> bool:
        assert running.poll() is None, log.read_text()
        return _LISTENS.search(log.read_text()) is not None

    until(is_there, "the agent to listen")
    found = _LISTENS.findall(log.read_text())
    return Agent(running=running, folder=folder, listens=found[-1])


@contextlib.contextmanager
def an_agent(
    folder: Path, text: str, endpoint: str | None, *, before: Sequence[str] = ()
) -> Iterator[Agent]:
    (folder / "agent.log").unlink(missing_ok=True)
    running = start(folder, text, endpoint, before=before)
    try:
        yield listening(running, folder)
    finally:
        running.kill()
        running.wait(PATIENCE)


def endpoint_of(server: Server, vm: str) -> str:
    return f"http://{server.metadata}/vm/{vm}"


def schedule(server: Server, type_: str, *resources: str, **more: object) -> str:
    body = {"type": type_, "resources": list(resources), **more}
    made = server.call("POST", "/v1/events", body)
    return str(made["events"][0]["event_id"])


def status_of(server: Server, event_id: str) -> str:
    return str(server.call("GET", f"/v1/events/{event_id}")["status"])
