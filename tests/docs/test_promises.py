"""docs/install.md has every promise of what is installed: ports, paths, variables, codes, units."""

import re
from typing import Final

import pytest

from forewarned.cli.failures import ExitCode
from forewarned.runtime.settings import SETTINGS, Settings
from tests.docs.pages import PAGES, ROOT
from tools.release.deb import AGENT, SERVER, Package

PAGE: Final = PAGES["install.md"]
_VARIABLE: Final = re.compile(r"\bFOREWARNED_[A-Z]+(?:_[A-Z]+)*\b")
# Of a compose file, for the database beside the nodes: no program of ours reads it.
_OTHERS: Final = {"FOREWARNED_DB_PASSWORD"}


def section(title: str) -> str:
    _, _, rest = PAGE.partition(f"### {title}\n")
    assert rest, title
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(title: str) -> set[str]:
    """What the first column of a section's table names."""
    rows = re.findall(r"^\| (.*?) \|", section(title), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_port_is_listed() -> None:
    settings = Settings()
    assert settings.arm is not None
    exposed = re.search(r"^EXPOSE (.*)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert exposed is not None

    ports = {str(each.port) for each in (settings.metadata, settings.control, settings.arm)}

    assert set(exposed[1].split()) == ports
    assert first_cells("Ports") == ports | {"8172", "80"}


def test_every_variable_that_is_no_setting_is_listed() -> None:
    settings = {f"FOREWARNED_{each.name.upper()}" for each in SETTINGS}
    found = {
        name
        for folder in ("src", "packaging")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".png"}
        for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))
    }

    listed = {name for name in first_cells("Variables") if name.startswith("FOREWARNED_")}

    assert found - settings - _OTHERS <= listed
    # The control listener's address is a setting of the server, too.
    assert listed & settings == {"FOREWARNED_CONTROL"}
    assert listed - settings - found == set()


def test_every_exit_code_is_listed_here_and_at_the_command_line() -> None:
    codes = {str(int(code)) for code in ExitCode}
    [table] = re.findall(r"### Exit codes\n\n(.*?)\n\n", PAGES["cli.md"], re.DOTALL)

    assert first_cells("Signals and exit codes") >= codes
    assert set(re.findall(r"^\| (\d+) \|", table, re.MULTILINE)) == codes


def test_every_unit_is_listed() -> None:
    units = {unit for package in (AGENT, SERVER) for unit in package.units}

    # Its timer starts this one.
    assert first_cells("Units") == units - {"forewarned-backup.service"}


@pytest.mark.parametrize("package", [AGENT, SERVER], ids=lambda package: package.name)
def test_every_place_of_a_debian_package_is_listed(package: Package) -> None:
    assert {package.home, package.state, f"/{package.config[0]}"} <= first_cells("Paths")


def test_every_volume_and_place_of_the_image_is_listed() -> None:
    text = (ROOT / "Containerfile").read_text()
    places = set(re.findall(r"(?<![\w.])/(?:etc|var/lib)/forewarned(?:/\w+)?", text))

    assert places <= first_cells("Paths") | {"/etc/forewarned"}
