"""The guide "Drive it with az", run as it stands there, by the unmodified az."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.az import changes, next_change, variables
from tests.end_to_end.server_process import Server, ready
from tests.end_to_end.terminal import Terminal, terminal
from tests.end_to_end.transcripts import Ids, Step, programs, steps, without_chance

pytestmark = pytest.mark.thorough

GUIDE: Final = Path(__file__).parents[2] / "docs" / "az.md"
FREE: Final = "127.0.0.1:0"


def test_every_command_of_the_guide_does_what_the_guide_says(tmp_path: Path) -> None:
    page = GUIDE.read_text()
    first, *rest = steps(page)
    home = tmp_path / "home"

    with started(first.command, tmp_path) as server:
        ports = {"127.0.0.1:8169": server.metadata, "127.0.0.1:8171": server.arm}
        control = f"http://{server.control}"
        with terminal(tmp_path, variables(home, FOREWARNED_CONTROL=control)) as here:
            for name, text in programs(page).items():
                (tmp_path / name).write_text(with_ports(text, ports))
            ids = Ids()
            for step in rest:
                perform(step, here, server, ids, ports)

    assert not (home / ".azure").exists()
    assert not (home / ".ssh").exists()


@contextlib.contextmanager
def started(command: str, folder: Path) -> Iterator[Server]:
    """The server, by the guide's own command; only the ports are any that are free."""
    assert command.startswith("forewarned serve ")
    free = dict.fromkeys(("FOREWARNED_METADATA", "FOREWARNED_CONTROL", "FOREWARNED_ARM"), FREE)
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            env=variables(folder / "home", **free),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as running,
    ):
        try:
            yield ready(running, folder)
        finally:
            running.send_signal(signal.SIGTERM)


def perform(step: Step, here: Terminal, server: Server, ids: Ids, ports: dict[str, str]) -> None:
    """Type a command, and compare. After one that waits (`&`), go on when its event is there."""
    command = with_ports(ids.put_into(step.command), ports)
    with changes(server) as told:
        printed = here.run(command)
        if step.command.endswith("&"):
            next_change(told, "scheduled")

    assert (printed.status != 0) is step.is_refused, f"{step.command}: {printed.text}"
    if step.output:
        assert without_chance(printed.text) == without_chance(step.output), step.command
        ids.learn(step.output, printed.text)


def with_ports(text: str, ports: dict[str, str]) -> str:
    for shown, actual in ports.items():
        text = text.replace(shown, actual)
    return text
