"""Commands that need no server, and what the program needs to start."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import forewarned.control.fleet
from forewarned import __version__
from forewarned.cli.commands.serve import SERVER_PACKAGES
from tests.cli.served import PLAIN, Served, invoke

ROOT = Path(__file__).resolve().parents[2]
DEMO = Path(forewarned.control.fleet.__file__).with_name("demo.toml")
WITHOUT_SERVER = (
    "import sys; sys.modules |= dict.fromkeys(['uvicorn', 'starlette', 'uvloop', 'httptools']);"
    "from forewarned.cli import main; main()"
)


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, env=PLAIN
    )


def test_the_version_is_told() -> None:
    assert invoke("--version").stdout == f"forewarned {__version__}\n"


def test_a_fleet_file_is_checked_without_a_server() -> None:
    result = invoke("fleet", "check", str(DEMO))

    assert result.exit_code == 0
    assert "avset/db     availability set 4   4   db-0, …, db-3\n" in result.stdout
    assert result.stdout.endswith("16 VMs in 7 scopes on 6 hosts\n")
    assert json.loads(invoke("fleet", "check", str(DEMO), "--json").stdout)["vms"]


def test_a_fleet_too_large_for_its_addresses_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('[[scale_sets]]\nname = "api"\ncapacity = 3\n')

    result = invoke("fleet", "check", str(file), FOREWARNED_ADDRESS_RANGE="127.9.0.0/30")

    assert result.exit_code == 1
    assert "too few addresses" in result.stderr


def test_settings_show_their_values_and_where_they_come_from() -> None:
    result = invoke("settings", "--clock", "60x", FOREWARNED_RATE="10")

    lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert lines["clock"] == ["60x", "flag", "--clock"]
    assert lines["rate"] == ["10", "environment", "FOREWARNED_RATE"]
    assert lines["mode"] == ["emulator", "default"]


def test_settings_as_json_have_the_shape_of_the_api(tmp_path: Path) -> None:
    file = tmp_path / "forewarned.toml"
    file.write_text('clock = "paused"\n')

    result = invoke("settings", "--config", str(file), "--json")

    found = {each["name"]: each for each in json.loads(result.stdout)}
    assert found["clock"] == {"name": "clock", "value": "paused", "origin": f"file {file}:1"}


def test_help_shows_what_a_setting_may_be_and_its_default_in_either_mode() -> None:
    shown = " ".join(invoke("serve", "--help").stdout.split())

    assert "--log-level debug|info|warning|error" in shown
    assert "--rate-limit on|off" in shown
    assert "--metadata HOST:PORT" in shown
    assert "default: 1x; real in service mode]" in shown
    assert "default: (empty)]" in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_taught_to_complete(shell: str) -> None:
    result = invoke("completion", shell)

    assert result.exit_code == 0
    assert f"_FOREWARNED_COMPLETE={shell}_complete" in result.stdout


def completed(words: str, address: str) -> list[str]:
    result = invoke(
        FOREWARNED_CONTROL=address,
        _FOREWARNED_COMPLETE="bash_complete",
        COMP_WORDS=f"forewarned {words}",
        COMP_CWORD=str(len(words.split())),
    )
    assert result.stderr == ""
    return [line.partition(",")[2] for line in result.stdout.splitlines() if line]


def test_names_and_ids_are_completed_from_the_server(served: Served) -> None:
    event = served.schedule("web")

    assert completed("schedule reboot --vm w", served.address) == ["web"]
    assert completed("approve 0", served.address) == [event]
    assert completed("fail rack", served.address) == ["rack1", "rack2"]
    assert completed("maintain --scope av", served.address) == ["avset/db"]
    assert completed("events --type re", served.address) == ["reboot", "redeploy"]


def test_without_a_server_nothing_is_completed_and_nothing_said() -> None:
    assert completed("schedule reboot --vm w", "127.0.0.1:1") == []
    assert completed("schedule reboot --vm w", "no address") == []
    assert completed("cl", "127.0.0.1:1") == ["clock"]


def test_serving_without_its_packages_says_how_to_install_them() -> None:
    result = python(WITHOUT_SERVER, "serve")

    assert result.returncode == 1
    assert "pip install 'forewarned[server]'" in result.stderr


def test_serving_with_some_of_its_packages_names_those_it_lacks() -> None:
    """The extra `testing` has one of them, and what lacks the others is not this process."""
    lacking = "import sys; sys.modules |= dict.fromkeys(['starlette', 'jwt']);"

    result = python(f"{lacking}from forewarned.cli import main; main()", "serve")

    assert result.returncode == 1
    assert "not installed (jwt, starlette)" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_packages_that_are_looked_for_are_those_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[>;]", line)[0] for line in project["optional-dependencies"]["server"]}
    imported = {"pyjwt": "jwt", "prometheus-client": "prometheus_client"}

    assert {imported.get(name, name) for name in wanted} == set(SERVER_PACKAGES)


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        (["--help"], 0),
        (["serve", "--help"], 0),
        (["settings"], 0),
        (["fleet", "check", str(DEMO)], 0),
        (["events", "--control", "127.0.0.1:1"], 3),
    ],
)
def test_all_else_works_without_the_packages_that_serve(words: list[str], exit_code: int) -> None:
    result = python(WITHOUT_SERVER, *words)

    assert result.returncode == exit_code, result.stderr


def test_importing_the_command_line_is_cheap() -> None:
    heavy = "{'httpx2', 'rich', 'msgspec', 'starlette', 'uvicorn', 'asyncio', 'sqlite3'}"

    result = python(f"import sys, forewarned.cli; print({heavy} & set(sys.modules))")

    assert result.stdout == "set()\n"


def test_a_server_that_can_not_start_says_why(tmp_path: Path) -> None:
    words = ["serve", "--data", str(tmp_path), "--fleet", str(tmp_path / "none.toml")]
    ports = ["--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0", "--arm", "127.0.0.1:0"]

    result = python("from forewarned.cli import main; main()", *words, *ports)

    assert result.returncode == 1
    assert "error: " in result.stderr
    assert "none.toml: No such file" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("group", ["fleet", "scenario", "agent"])
def test_commands_that_check_a_file_exit_alike_if_it_has_mistakes(
    tmp_path: Path, group: str
) -> None:
    file = tmp_path / "it.toml"
    file.write_text("nothing = 1\n", encoding="utf-8")

    result = invoke(group, "check", str(file))

    assert result.exit_code == 1
    assert "it.toml:1" in result.stderr
