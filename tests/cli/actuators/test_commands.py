"""`forewarned actuator run`: its file, its state, and a task that it carries out."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from forewarned.actuators.assembly import sole_user
from tests.actuators.command.programs import program
from tests.actuators.served import rack1, served
from tests.cli.served import invoke
from tests.control.control_api import control_api

NOWHERE = "http://127.0.0.1:1"
FILE = """\
[actuators.rack1]
driver = "command"
reboot = { argv = ["PROGRAM"] }
[actuators.far]
driver = "remote"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "actuators.toml"
    path.write_text(FILE.replace("PROGRAM", str(tmp_path / "vm-reboot")))
    return path


def arguments(file: Path, *more: str, control: str = NOWHERE) -> list[str]:
    state = str(file.parent / "state")
    return [
        "actuator", "run", *more, "--config", str(file), "--state", state, "--control", control,
    ]  # fmt: skip


def test_mistakes_in_the_file_are_said_all_at_once(file: Path) -> None:
    file.write_text('[actuators.a]\ndriver = "x"\n[actuators.b]\n')

    result = invoke(*arguments(file))

    assert result.exit_code == 2
    assert f"2 mistakes in {file}" in result.stderr
    assert f"{file}:2: actuators.a.driver" in result.stderr
    assert f"{file}:3: actuators.b" in result.stderr


@pytest.mark.parametrize("name", ["rack2", "far"])
def test_an_actuator_that_is_not_run_here_is_refused(file: Path, name: str) -> None:
    result = invoke(*arguments(file, name))

    assert result.exit_code == 2
    assert f"has no [actuators.{name}] that can be run here" in result.stderr


def test_a_file_without_actuators_is_refused(file: Path) -> None:
    file.write_text("")

    result = invoke(*arguments(file))

    assert result.exit_code == 2
    assert "has no [actuators.NAME]" in result.stderr


def test_a_token_is_not_sent_where_it_could_be_read(file: Path, tmp_path: Path) -> None:
    """S16."""
    token = tmp_path / "token"
    token.write_text("secret")

    result = invoke(
        *arguments(file, control="http://forewarned.example:8170"), "--token-file", str(token)
    )

    assert result.exit_code == 2
    assert "not sending a token to http://forewarned.example:8170" in result.stderr


def test_two_can_not_share_a_state_directory(file: Path) -> None:
    with sole_user(file.parent / "state"):
        result = invoke(*arguments(file))

    assert result.exit_code == 1
    assert f"in use by process {os.getpid()}" in result.stderr


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110  # another process has no way to tell
            await asyncio.sleep(0.02)


async def test_it_carries_out_tasks_until_it_is_told_to_stop(file: Path) -> None:
    reboots = file.parent / "reboots"
    program(file.parent / "vm-reboot", f'echo "$FOREWARNED_VM" >> {reboots}')

    async with control_api(actuator_of=rack1) as control, served(control) as url:
        command = arguments(file, "rack1", "--log-format", "json", control=url)
        running = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "forewarned", *command, stderr=asyncio.subprocess.PIPE
        )
        event = await control.schedule("Reboot", "web")

        async def is_over() -> bool:
            shown = await control.get(f"/v1/events/{event['event_id']}")
            return bool(shown["status"] == "Completed")

        await until(is_over)
        running.send_signal(signal.SIGTERM)
        _, log = await running.communicate()

    assert running.returncode == 0
    assert reboots.read_text() == "web\n"
    messages = [json.loads(line)["message"] for line in log.splitlines()]
    assert "a task is done" in messages
