"""What is installed is pinned, and the script that installs it runs on any Python."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[\w.+!]+)( ; (?P<marker>[^/\\]+))? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def pins(constraints: str) -> dict[tuple[str, str | None], str]:
    """What a constraints file pins; a line that is neither pin, hash nor comment is refused."""
    found: dict[tuple[str, str | None], str] = {}
    for number, line in enumerate((ROOT / "constraints" / constraints).read_text().splitlines(), 1):
        if pin := PIN.fullmatch(line):
            found[pin["name"], pin["marker"]] = pin["version"]
        else:
            assert line.startswith("#") or HASH.fullmatch(line), f"{constraints}:{number}: {line}"
    return found


@pytest.mark.parametrize(
    "constraints",
    [
        "agent.txt",
        "server.txt",
        "testing.txt",
        "dev.txt",
        "az.txt",
        "nova.txt",
        "fuzz.txt",
        "libvirt.txt",
        "libvirt-build.txt",
    ],
)
def test_constraints_hold_pins_and_hashes_and_no_address(constraints: str) -> None:
    assert pins(constraints)


def test_serving_is_tested_with_the_versions_it_is_installed_with() -> None:
    tested = pins("dev.txt")

    # A pin without a marker is for every platform.
    assert {
        (name, marker): version
        for (name, marker), version in pins("server.txt").items()
        if version not in (tested.get((name, marker)), tested.get((name, None)))
    } == {}


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for_libvirt = extras.pop("libvirt")
    for_serving = [*project["dependencies"], *extras["server"]]
    for_all = [*project["dependencies"], *(r for extra in extras.values() for r in extra)]

    assert _names(for_serving) <= {name for name, _ in pins("server.txt")}
    assert _names(for_all) <= {name for name, _ in pins("dev.txt")}
    assert _names(for_libvirt) <= {name for name, _ in pins("libvirt.txt")}


def test_the_environment_script_can_be_read_by_pythons_too_old_to_use() -> None:
    script = (ROOT / "tools" / "environment.py").read_text()

    ast.parse(script, feature_version=(3, 6))
    assert set(_imported(script)) <= sys.stdlib_module_names


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9-]", requirement, maxsplit=1)[0] for requirement in requirements}


def _imported(script: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
