"""The command driver: the contract of all drivers, exit codes, output, and programs that outlive it."""

import asyncio
import os
import signal
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.actuators.command.driver import CommandDriver
from forewarned.actuators.driver import (
    Action,
    DriverError,
    Effect,
    Power,
    RefusedError,
    TryLaterError,
    Vm,
)
from forewarned.core.model import EventType
from tests.actuators.command.programs import program
from tests.actuators.contract import KEY, DriverContract, quiet
from tests.actuators.desks import WEB_0

REBOOT = Action(type=EventType.REBOOT, do="vm-reboot", effect=Effect.RESTARTS)


@dataclass(kw_only=True)
class Scripts:
    folder: Path
    vm: Vm = WEB_0
    action: Action = REBOOT
    keeps_marks: bool = True
    has_check: bool = False
    script: str = 'echo "$FOREWARNED_KEY" >> {folder}/actions'
    made: list[CommandDriver] = field(default_factory=list)

    @property
    def sees_vms(self) -> bool:
        return self.has_check

    def driver(self) -> CommandDriver:
        reboot = program(self.folder / "vm-reboot", self.script.format(folder=self.folder))
        check = program(
            self.folder / "vm-is-up",
            'test "$FOREWARNED_VM" = web-0 || { echo \'{"power": "gone"}\'; exit 1; }\n'
            f"boots=$(cat {self.folder}/actions 2>/dev/null | wc -l)\n"
            'echo "{\\"host\\": \\"hv-a\\", \\"witness\\": \\"boot $boots\\"}"',
        )
        return CommandDriver(
            {EventType.REBOOT: (reboot,)},
            (check,) if self.has_check else (),
            self.folder / "state",
        )

    def actions(self) -> int:
        try:
            return len((self.folder / "actions").read_text().splitlines())
        except FileNotFoundError:
            return 0

    def break_(self) -> None:
        self.script = "echo no such VM >&2; exit 3"
        self.driver()


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(folder=tmp_path)


class TestWithoutCheck(DriverContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Scripts:
        return Scripts(folder=tmp_path)


class TestWithCheck(DriverContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Scripts:
        return Scripts(folder=tmp_path, has_check=True)


async def acted(scripts: Scripts, action: Action = REBOOT) -> CommandDriver:
    driver = scripts.driver()
    await driver.mark(WEB_0, KEY)
    await driver.act(action, WEB_0, KEY, quiet)
    return driver


async def test_the_program_gets_the_task_and_little_else(scripts: Scripts) -> None:
    """S15: the task in variables and as JSON, and no environment of the actuator's."""
    scripts.script = "env > {folder}/env; cat > {folder}/stdin; pwd > {folder}/pwd"

    await acted(
        scripts,
        Action(
            type=EventType.REBOOT,
            do="vm-reboot",
            effect=Effect.RESTARTS,
            duration=timedelta(seconds=9),
            cordoned=frozenset({"hv-d", "hv-c"}),
        ),
    )

    env = dict(line.split("=", 1) for line in (scripts.folder / "env").read_text().splitlines())
    assert {name: value for name, value in env.items() if name.startswith("FOREWARNED_")} == {
        "FOREWARNED_KEY": KEY,
        "FOREWARNED_EVENT_ID": KEY.partition("/")[0],
        "FOREWARNED_TYPE": "Reboot",
        "FOREWARNED_VM": "web-0",
        "FOREWARNED_VM_ID": WEB_0.vm_id,
        "FOREWARNED_HOST": "hv-a",
        "FOREWARNED_DURATION": "9",
        "FOREWARNED_CORDONED": "hv-c hv-d",
        "FOREWARNED_TARGET": "",
    }
    assert not {name for name in env if name.startswith("PYTEST")}
    assert '"vm": "web-0"' in (scripts.folder / "stdin").read_text()
    assert (scripts.folder / "pwd").read_text().strip() == "/"


async def test_the_last_line_may_name_the_new_host(scripts: Scripts) -> None:
    scripts.script = """echo moving; echo '{{"host": "hv-b"}}'"""

    driver = await acted(scripts)

    assert (await driver.observe(WEB_0)).host == "hv-b"


@pytest.mark.parametrize("line", ["", "hv-b", "[1]", '{"host": 7}', '{"host": ""}', "{"])
async def test_any_other_last_line_means_nothing(scripts: Scripts, line: str) -> None:
    scripts.script = f"cat <<'END'\n{line}\nEND".replace("{", "{{").replace("}", "}}")

    driver = await acted(scripts)

    seen = await driver.observe(WEB_0)
    assert (seen.host, seen.issued) == (None, True)


async def test_exit_code_75_means_that_nothing_was_done(scripts: Scripts) -> None:
    scripts.script = "echo the queue is full >&2; exit 75"

    with pytest.raises(TryLaterError, match="the queue is full"):
        await acted(scripts)

    seen = await scripts.driver().observe(WEB_0)
    assert (seen.issued, seen.untouched) == (False, True)


async def test_any_other_exit_code_is_a_failure_with_the_last_line_of_its_errors(
    scripts: Scripts,
) -> None:
    scripts.script = "echo one >&2; echo two >&2; exit 3"

    with pytest.raises(DriverError, match="vm-reboot ended with exit code 3: two"):
        await acted(scripts)

    seen = await scripts.driver().observe(WEB_0)
    assert (seen.issued, seen.untouched) == (False, False)


async def test_a_program_that_a_signal_ends_has_failed(scripts: Scripts) -> None:
    scripts.script = "kill -9 $$"

    with pytest.raises(DriverError, match="was killed by SIGKILL"):
        await acted(scripts)


async def test_a_program_that_is_missing_is_said_before_anything_is_done(
    scripts: Scripts,
) -> None:
    driver = scripts.driver()
    (scripts.folder / "vm-reboot").unlink()

    verdict = await driver.survey(REBOOT, WEB_0)

    assert not verdict.possible
    assert "there is no executable program" in verdict.reason


async def test_a_state_directory_that_cannot_be_written_is_a_refusal(
    scripts: Scripts, tmp_path: Path
) -> None:
    (scripts.folder / "state").write_text("a file")

    with pytest.raises(DriverError, match="can't write"):
        await scripts.driver().mark(WEB_0, KEY)
    with pytest.raises(RefusedError, match="can't start a program for web-0"):
        await scripts.driver().act(REBOOT, WEB_0, KEY, quiet)


async def test_the_state_may_be_relative_to_where_the_actuator_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reboot = program(tmp_path / "vm-reboot", "pwd")
    driver = CommandDriver({EventType.REBOOT: (reboot,)}, (), Path("state"))

    await driver.mark(WEB_0, KEY)
    await driver.act(REBOOT, WEB_0, KEY, quiet)

    assert (await driver.observe(WEB_0)).issued


async def test_a_program_that_was_not_even_started_has_done_nothing(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")

    with pytest.raises(RefusedError, match="could not be started"):
        await acted(scripts)


@pytest.mark.parametrize(
    ("script", "power"),
    [
        ("exit 0", Power.RUNNING),
        ("exit 1", Power.OFF),
        ("exit 75", Power.UNKNOWN),
        ("kill -9 $$", Power.UNKNOWN),
        ("""echo '{"power": "paused"}'""", Power.PAUSED),
        ("""echo '{"power": "sleepy"}'""", Power.RUNNING),
        ("""echo '{"power": "gone"}'; exit 1""", Power.GONE),
    ],
)
async def test_a_check_says_how_the_vm_is(tmp_path: Path, script: str, power: Power) -> None:
    check = program(tmp_path / "check", script)
    driver = CommandDriver({}, (check,), tmp_path / "state")

    assert (await driver.observe(WEB_0)).power is power


# --- programs that outlive their actuator --------------------------------------------------------


async def begun(scripts: Scripts) -> None:
    """Start a program that waits, as an actuator that is then killed has left it."""
    scripts.script = (
        "mkfifo {folder}/gate; echo $$ > {folder}/pid; read line < {folder}/gate\n"
        'echo "$FOREWARNED_KEY" >> {folder}/actions'
    )
    driver = scripts.driver()
    await driver.mark(WEB_0, KEY)
    acting = asyncio.create_task(driver.act(REBOOT, WEB_0, KEY, quiet))
    async with asyncio.timeout(10):
        while not (scripts.folder / "pid").exists():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)
    acting.cancel()
    await asyncio.gather(acting, return_exceptions=True)
    scripts.made.append(driver)


async def until_over(driver: CommandDriver) -> None:
    async with asyncio.timeout(10):
        while (await driver.observe(WEB_0)).job:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)


async def test_a_program_goes_on_without_its_actuator_and_its_end_is_known(
    scripts: Scripts,
) -> None:
    """I22: the next actuator waits for it, and does not start it again."""
    await begun(scripts)
    successor = scripts.driver()

    meanwhile = await successor.observe(WEB_0)
    with pytest.raises(DriverError, match="another program for web-0 is still running"):
        await successor.act(REBOOT, WEB_0, KEY, quiet)
    (scripts.folder / "gate").write_text("go\n")
    await until_over(successor)
    await until_over(scripts.made[0])

    assert meanwhile.job == "its program is running"
    seen = await successor.observe(WEB_0)
    assert (seen.intent, seen.issued, seen.untouched) == (KEY, True, False)
    assert scripts.actions() == 1


async def test_what_a_program_leaves_running_is_not_waited_for(scripts: Scripts) -> None:
    scripts.script = "sleep 60 & echo $! > {folder}/left"

    driver = await acted(scripts)

    assert not (await driver.observe(WEB_0)).job
    os.kill(int((scripts.folder / "left").read_text()), signal.SIGKILL)


async def test_a_program_that_takes_too_long_is_ended_by_the_next_actuator_too(
    scripts: Scripts,
) -> None:
    await begun(scripts)
    successor = scripts.driver()

    await successor.abort(WEB_0, "another key")
    still = await successor.observe(WEB_0)
    await successor.abort(WEB_0, KEY)

    seen = await successor.observe(WEB_0)
    await until_over(scripts.made[0])
    assert still.job
    assert (seen.job, seen.issued, seen.untouched) == ("", False, False)
    assert scripts.actions() == 0


async def test_a_task_whose_program_was_never_started_is_untouched(scripts: Scripts) -> None:
    """I22: an actuator that was killed between its report and the start has done nothing."""
    await scripts.driver().mark(WEB_0, KEY)

    seen = await scripts.driver().observe(WEB_0)

    assert (seen.intent, seen.untouched) == (KEY, True)
