"""The files of examples/several-nodes, as far as they can be checked without hosts and containers."""

import re
import shlex
import signal
import subprocess
from configparser import RawConfigParser, SectionProxy
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it comes with mkdocs, without types
from click import Context

from forewarned.cli import cli
from forewarned.config.values import Address
from forewarned.runtime.settings import SETTINGS, Mode, load
from tests import preloaded
from tests.cluster.waiting import wait_until
from tests.end_to_end.server_process import environment, ready
from tests.packages import need
from tests.postgresql.databases import Database

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "several-nodes"
FILE = EXAMPLES / "forewarned.toml"
UNITS = sorted(EXAMPLES.glob("*.service"))
NODE_UNITS = [EXAMPLES / "forewarned.service", EXAMPLES / "forewarned@.service"]
TEXT = (EXAMPLES / "compose.yaml").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load(TEXT)


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


def test_the_settings_of_three_nodes_differ_only_in_their_addresses(tmp_path: Path) -> None:
    nodes = []
    for number in (1, 2, 3):
        file = tmp_path / f"node{number}.toml"
        file.write_text(FILE.read_text(encoding="utf-8").replace("10.0.0.11", f"10.0.0.1{number}"))
        settings = load(flags={}, environ={}, path=file).settings
        nodes.append({each.name: getattr(settings, each.name) for each in fields(settings)})

    first = nodes[0]
    differing = {name for name in first if len({str(node[name]) for node in nodes}) > 1}
    assert differing == {"metadata", "control", "arm"}
    assert len({str(node[name]) for node in nodes for name in differing}) == 9


@pytest.mark.parametrize("unit", NODE_UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_node_by_a_command_that_the_program_takes(unit: Path) -> None:
    words = shlex.split(_service(unit)["ExecStart"].replace("%i", "node1"))
    serve = cli.get_command(Context(cli), "serve")
    assert serve is not None

    with serve.make_context("serve", words[2:]) as given:
        read = {name: value for name, value in given.params.items() if value is not None}

    assert words[:2] == ["/opt/forewarned/bin/forewarned", "serve"]
    assert str(read["config"]).startswith("/etc/forewarned/")


def test_the_template_gives_each_node_a_directory_of_its_own_and_is_else_the_unit_of_one_node() -> (
    None
):
    one, template = (_service(unit) for unit in NODE_UNITS)

    differing = {name for name in {*one, *template} if one.get(name) != template.get(name)}
    assert differing == {"execstart", "statedirectory"}
    assert template["StateDirectory"] == "forewarned/%i"
    assert "--config /etc/forewarned/%i.toml" in template["ExecStart"]
    assert "--data /var/lib/forewarned/%i" in template["ExecStart"]


def test_each_node_of_the_compose_file_has_settings_that_are_accepted_and_a_directory_of_its_own() -> (
    None
):
    nodes = _composed()

    for node in nodes.values():
        resolved = load(flags={}, environ=node["environment"])
        unknown = set(node["environment"]) - {each.variable for each in SETTINGS}
        assert unknown == {"PGPASSWORD"}
        assert resolved.settings.mode is Mode.SERVICE
        assert (EXAMPLES / node["build"]["context"] / node["build"]["dockerfile"]).exists()
    volumes = [volume.partition(":")[0] for node in nodes.values() for volume in node["volumes"]]
    ports = [port.rpartition(":")[0] for node in nodes.values() for port in node["ports"]]
    assert len(set(volumes)) == len(volumes) == 3
    assert len(set(ports)) == len(ports) == 3
    assert set(volumes) < set(COMPOSE["volumes"])


def test_three_nodes_run_with_the_settings_of_the_compose_file(
    database: Database, tmp_path: Path
) -> None:
    """All but containers: its first lines say how to get a token, and how to use it in one."""
    token, nodes = (
        words.partition(" node1 ")[2]
        for words in re.findall(r"^#   (docker compose exec .*)$", TEXT, re.MULTILINE)
    )
    with ExitStack() as stack:
        for name, node in _composed().items():
            # Where the image and the network of the containers would come in.
            here = {
                "FOREWARNED_STORE": database.url,
                "FOREWARNED_DATA": str(tmp_path / name / "state"),
                "FOREWARNED_METADATA": _anywhere(node["environment"]["FOREWARNED_METADATA"]),
                "FOREWARNED_CONTROL": _anywhere(node["environment"]["FOREWARNED_CONTROL"]),
                # One process, which starts sooner.
                "FOREWARNED_WORKERS": "0",
            }
            (tmp_path / name).mkdir()
            log = stack.enter_context((tmp_path / name / "log").open("w"))
            surroundings = environment(**(node["environment"] | here))
            running = stack.enter_context(
                preloaded.start(
                    *node["command"],
                    folder=tmp_path / name,
                    environment=surroundings,
                    errors=log,
                )
            )
            stack.callback(running.send_signal, signal.SIGTERM)
            server = ready(running, tmp_path / name)
        made = preloaded.run(*shlex.split(token)[1:], environment=surroundings, folder=tmp_path)
        assert made.returncode == 0, made.stderr
        port = server.control.rpartition(":")[2]
        asked = nodes.replace("8170", port).replace("/var/lib/forewarned", str(server.data))

        def listed() -> str:
            """A node looks for new tokens once a second, and a new node for the others."""
            told = preloaded.run(
                *shlex.split(asked)[1:],
                environment=surroundings | {"FOREWARNED_TOKEN": made.stdout.strip()},
                folder=tmp_path,
            )
            return told.stdout

        wait_until(lambda: listed().count("fresh") == 3)


def _composed() -> dict[str, Any]:  # YAML, which tests look into
    """The nodes of the compose file."""
    return {name: each for name, each in COMPOSE["services"].items() if name != "db"}


def _anywhere(address: str) -> str:
    return f"{address.rpartition(':')[0]}:0"


def _service(unit: Path) -> SectionProxy:
    read = RawConfigParser(strict=False)
    read.read(unit, encoding="utf-8")
    return read["Service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    analyze = need("systemd-analyze")
    program, *_ = shlex.split(_service(unit)["ExecStart"])
    # The programs and the user are not on this machine.
    text = unit.read_text(encoding="utf-8").replace(program, "/bin/true").replace("User=", "#")
    copy = tmp_path / unit.name
    copy.write_text(text)

    done = subprocess.run(
        [analyze, "verify", str(copy)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
