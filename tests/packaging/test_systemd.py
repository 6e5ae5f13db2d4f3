"""The units of the server: systemd takes them, and they leave the server little to harm."""

import configparser
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from forewarned.runtime.settings import Mode, load
from tests.packages import need

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "packaging" / "systemd"
OWN: Final = tuple(
    FOLDER / name
    for name in (
        "forewarned-server.service",
        "forewarned-metadata-address.service",
        "forewarned-backup.service",
        "forewarned-backup.timer",
    )
)
SERVER: Final = OWN[0]
PROGRAM: Final = "/opt/forewarned/bin/forewarned"


def lines(unit: Path, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)


@pytest.mark.parametrize("unit", OWN, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    analyze = need("systemd-analyze")
    # The program is where the package puts it, which is not here.
    program = tmp_path / "forewarned"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for each in OWN:
        text = each.read_text().replace(PROGRAM, str(program)).replace("/bin/ip ", f"{program} ")
        (tmp_path / each.name).write_text(text)

    done = subprocess.run(
        [analyze, "verify", "--man=no", tmp_path / unit.name],
        capture_output=True,
        text=True,
        check=False,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:/usr/lib/systemd/system:/lib/systemd/system"},
    )

    told = [line for line in done.stderr.splitlines() if "forewarned" in line]
    assert told == []


@pytest.mark.parametrize("unit", OWN[:3], ids=lambda unit: unit.name)
def test_the_unit_leaves_little_to_harm(unit: Path) -> None:
    """Of 10, by systemd's own measure; the agent's, which runs as root, has more."""
    analyze = need("systemd-analyze")

    done = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
    )

    found = re.search(r"Overall exposure level .*: ([0-9.]+)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) <= 3.5, done.stdout


def test_the_server_is_hardened_as_the_agent_is() -> None:
    agent = ROOT / "examples" / "agent" / "forewarned-agent.service"
    own, agents = (
        set(re.findall(r"^(\w+)=", u.read_text(), re.MULTILINE)) for u in (SERVER, agent)
    )

    # Health files of the agent's hooks; the server writes to its own directory alone.
    assert agents - own == {"ReadWritePaths"}


def test_the_server_runs_as_its_own_user_in_its_own_directory() -> None:
    [user] = lines(SERVER, "User")
    declared = (FOLDER / "forewarned-server.sysusers").read_text()
    made = (FOLDER / "forewarned-server.tmpfiles").read_text()

    assert re.search(rf"^u {user} ", declared, re.MULTILINE)
    assert re.search(rf"^d /var/lib/forewarned +0700 {user} {user} ", made, re.MULTILINE)
    assert lines(SERVER, "StateDirectory") == ["forewarned"]


def test_the_settings_that_the_package_brings_are_a_services() -> None:
    resolved = load(flags={}, environ={}, path=FOLDER / "forewarned.toml")

    assert resolved.settings.mode is Mode.SERVICE
    assert resolved.settings.control.is_loopback


def test_units_name_only_commands_and_options_that_exist() -> None:
    for unit in OWN:
        parsed = configparser.ConfigParser(strict=False, interpolation=None)
        parsed.optionxform = str  # type: ignore[assignment,method-assign]  # as its own docs say
        parsed.read(unit)
        command = parsed.get("Service", "ExecStart", fallback="")
        if PROGRAM not in command:
            continue
        words = command.partition(PROGRAM)[2].split()
        done = subprocess.run(
            [ROOT / ".venv" / "bin" / "forewarned", words[0], "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        for flag in re.findall(r"(--[a-z-]+)[ =]", " ".join(words[1:])):
            assert flag in done.stdout or flag == "--utc"
