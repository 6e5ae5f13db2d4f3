"""The files of examples/several-nodes, as far as they can be checked without hosts to run them on."""

import shlex
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # it comes with mkdocs, without types

from forewarned.config.values import Address
from forewarned.runtime.settings import Mode, load
from tests.packages import need

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "several-nodes"
FILE = EXAMPLES / "forewarned.toml"
UNITS = sorted(EXAMPLES.glob("*.service"))


def test_the_settings_of_a_node_are_accepted() -> None:
    settings = load(flags={}, environ={}, path=FILE).settings

    assert settings.mode is Mode.SERVICE
    assert "db1.internal,db2.internal" in str(settings.store)
    assert settings.metadata == Address("10.0.0.11", 80)


def test_the_guide_shows_that_file() -> None:
    guide = (EXAMPLES.parents[1] / "docs" / "several-nodes.md").read_text(encoding="utf-8")
    shown = guide.partition("```toml\n")[2].partition("```")[0]
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]

    assert shown.splitlines() == lines


def test_each_node_of_the_compose_file_has_settings_that_are_accepted_and_a_directory_of_its_own() -> (
    None
):
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))
    nodes = {name: each for name, each in compose["services"].items() if name != "db"}

    for node in nodes.values():
        load(flags={}, environ=node["environment"])
        assert (EXAMPLES / node["build"]["context"] / node["build"]["dockerfile"]).exists()
    volumes = [volume.partition(":")[0] for node in nodes.values() for volume in node["volumes"]]
    assert len(set(volumes)) == len(volumes) == 3
    assert set(volumes) < set(compose["volumes"])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    analyze = need("systemd-analyze")
    read = RawConfigParser(strict=False)
    read.read(unit, encoding="utf-8")
    program, *_ = shlex.split(read["Service"]["ExecStart"])
    # The programs and the user are not on this machine.
    text = unit.read_text(encoding="utf-8").replace(program, "/bin/true").replace("User=", "#")
    copy = tmp_path / unit.name
    copy.write_text(text)

    done = subprocess.run(
        [analyze, "verify", str(copy)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
