"""`forewarned` as some artefact brings it, and the smallest real thing it is installed for."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.end_to_end.agents import PATIENCE, AgentFile, Notebook, endpoint_of, schedule, status_of
from tests.end_to_end.agents import until as wait_until
from tests.end_to_end.server_process import DOCUMENT, Server, environment, ready
from tools.release.python_distributions import ROOT

PINS: Final = ROOT / "constraints"
LISTENERS: Final = ("--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0")


def bare_environment() -> dict[str, str]:
    """Neither a test's environment nor the Python that runs it may lend anything."""
    lent = ("PYTEST", "PYTHON", "VIRTUAL_ENV", "COVERAGE", "COV_")
    return {n: v for n, v in environment().items() if not n.startswith(lent)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How `forewarned` is called."""

    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=bare_environment)
    """All that it is given."""

    def told(self, **variables: str) -> "Program":
        return replace(self, variables={**self.variables, **variables})

    def run(self, *words: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self.command, *words],
            cwd=cwd,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def start(self, *words: str, cwd: Path) -> "subprocess.Popen[str]":
        with (cwd / "log").open("a") as log:
            return subprocess.Popen(
                [*self.command, *words],
                cwd=cwd,
                env=self.variables,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    @contextlib.contextmanager
    def serving(self, folder: Path, *flags: str) -> Iterator[Server]:
        data = str(folder / "state")
        started = self.start("serve", "--data", data, *LISTENERS, *flags, cwd=folder)
        with started as running:
            try:
                yield ready(running, folder)
            finally:
                running.send_signal(signal.SIGTERM)


def installed(folder: Path, wheel: Path, *pins: Path, extras: str = "") -> Program:
    """An empty environment with what `pins` name and the wheel. The wheel may need nothing else."""
    venv = folder / "venv"
    pip = (sys.executable, "-m", "pip", "--python", str(venv), "--disable-pip-version-check")
    quick = ("install", "--quiet", "--no-compile")
    _run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    for each in pins:
        _run(*pip, *quick, "--no-deps", "--require-hashes", "-r", str(each))
    _run(*pip, *quick, "--no-index", f"{wheel}{extras}")
    _run(*pip, "check")
    return Program(command=(str(venv / "bin" / "forewarned"),))


def approve_by_agent(program: Program, server: Server, folder: Path) -> None:
    """The agent runs a hook before an event of its VM, approves it, and undoes it afterwards."""
    notebook = Notebook(path=folder / "notebook")
    file = AgentFile(notebook=notebook, hooks={"drain": ""}, prepare=["drain"])
    (folder / "agent.toml").write_text(file.text(folder / "agent-state"))
    server.get(f"/vm/web{DOCUMENT}")  # a VM that has never read its document gets no notice
    program = program.told(FOREWARNED_ENDPOINT=endpoint_of(server, "web"))
    program.run("agent", "check", "agent.toml", cwd=folder)

    with program.start("agent", "run", "--config", "agent.toml", cwd=folder) as agent:
        try:
            event = schedule(server, "Reboot", "web")
            wait_until(lambda: status_of(server, event) == "Started", "the agent to approve")
            server.call("POST", f"/v1/events/{event}/complete", {})
            wait_until(lambda: "undo drain" in notebook.runs, "the agent to undo what it did")
        finally:
            agent.send_signal(signal.SIGTERM)
            code = agent.wait(PATIENCE)

    # What it does after that, and whether it has done it when it is stopped, is not asked here.
    assert notebook.runs[:2] == ["prepare drain", "undo drain"]
    assert code == 0


def read_with_curl(server: Server) -> object:
    """What the README's own line says."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [line] = {line for line in readme.splitlines() if line.startswith("curl ")}
    said = subprocess.run(
        ["/bin/sh", "-c", line.replace("127.0.0.1:8169", server.metadata)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(said.stdout)


def without(pins: Path, *names: str, into: Path) -> Path:
    """A copy of the pins that leaves some packages out."""
    kept: list[str] = []
    keeps = True
    for line in pins.read_text().splitlines(keepends=True):
        if line[:1].isalpha():
            keeps = line.partition("==")[0] not in names
        kept += [line] if keeps else []
    into.write_text("".join(kept))
    return into


def _run(*command: str) -> None:
    done = subprocess.run(
        command, env=bare_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
