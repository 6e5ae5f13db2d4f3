"""Every file that a page shows is one that its reader takes."""

import ast
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its types are another package

from forewarned.agent.config.settings import parse as parse_agent
from forewarned.control.fleet.file import FleetFileError
from forewarned.control.startup.files import load_startup
from forewarned.runtime.settings import SETTINGS
from forewarned.runtime.settings import load as load_settings
from forewarned.scenarios.file import load as load_scenario
from forewarned.security.principals import parse as parse_principals
from forewarned.testing import ScheduledEventsService
from tests.docs.pages import Block, blocks
from tests.packages import need_libvirt_library

TOML: Final = [block for block in blocks() if block.language == "toml"]
PYTHON: Final = [block for block in blocks() if block.language == "python"]
FLEET: Final = {"vms", "availability_sets", "scale_sets", "cloud_services"}
SERVER: Final = {"actuators", "sources", "subscriptions"} | {each.name for each in SETTINGS}
# What a page has said before it goes on with a part of a file.
_ACTUATOR: Final = """
[actuators.rack1]
driver = "command"
hosts = ["hv-a"]
reboot = { argv = ["/bin/true"] }
listing = ["/bin/true"]
"""
_NAME: Final = 'name = "part"\ntitle = "A part of a scenario"\n'
_FLEET: Final = "".join(f'[[fleet]]\nname = "web_{each}"\nscale_set = "web"\n' for each in (0, 1))
_STEP: Final = '[[step]]\ndo = "restart_service"\nname = "restart"\n'
_EXPECT: Final = '[[expect]]\nthat = "running"\n'
_RECORDING: Final = """\
{"entry":"began","at":"2026-11-17T10:00:00Z","recording":1,"endpoint":"http://169.254.169.254",\
"api_version":"2020-07-01","anonymous":false,"vm":"web_0"}
{"entry":"answered","at":"2026-11-17T10:00:00Z","status":200,"headers":{},\
"body":"{\\"DocumentIncarnation\\":1,\\"Events\\":[]}"}
"""


def read_agent(text: str, folder: Path) -> None:
    parse_agent(text, path=folder / "agent.toml")


def read_startup(text: str, folder: Path) -> None:
    path = folder / "startup.toml"
    path.write_text(text)
    load_startup([path])


def read_scenario(text: str, folder: Path) -> None:
    (folder / "events.jsonl").write_text(_RECORDING)
    found = tomllib.loads(text).keys()
    before = "" if "name" in found else _NAME
    if before and "fleet" not in found:
        before += _FLEET
    if "step" not in found:
        before += _STEP
    path = folder / "scenario.toml"
    path.write_text(before + text + ("" if "expect" in found or not before else _EXPECT))
    load_scenario(path)


def read_settings(text: str, folder: Path) -> None:
    tables = tomllib.loads(text)
    if any(each.get("driver") == "libvirt" for each in tables.get("actuators", {}).values()):
        need_libvirt_library()
    if "sources" in tables and "actuators" not in tables:
        text += _ACTUATOR
    path = folder / "forewarned.toml"
    path.write_text(text)
    parts = {"actuators", "sources", "subscriptions"} & tables.keys()
    flags = {"mode": "service"} if parts and "mode" not in tables else {}
    load_settings(flags=flags, environ={}, path=path)


def read_principals(text: str, _: Path) -> None:
    parse_principals(text)


def reader_of(tables: Mapping[str, Any], block: Block) -> Callable[[str, Path], None]:
    found = tables.keys()
    if "agent" in found or "hooks" in found:
        return read_agent
    if "principals" in found:
        return read_principals
    if block.title.startswith("startup/") or found & FLEET:
        return read_startup
    if found & {"step", "expect"}:
        return read_scenario
    assert found <= SERVER, f"{block.place}: what kind of file is this? {sorted(found)}"
    return read_settings


@pytest.mark.parametrize("block", TOML, ids=lambda block: block.place)
def test_every_toml_file_is_read_by_its_reader(block: Block, tmp_path: Path) -> None:
    reader_of(tomllib.loads(block.text), block)(block.text, tmp_path)


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_every_piece_of_python_is_python(block: Block) -> None:
    ast.parse(block.text)


CLOUD_INIT: Final = [block for block in blocks() if block.title == "cloud-init.yaml"]


@pytest.mark.parametrize("block", CLOUD_INIT, ids=lambda block: block.place)
def test_every_agents_file_that_cloud_init_writes_is_read_by_the_agent(
    block: Block, tmp_path: Path
) -> None:
    written = {each["path"]: each["content"] for each in yaml.safe_load(block.text)["write_files"]}

    read_agent(written["/etc/forewarned/agent.toml"], tmp_path)


def test_there_are_files_to_check() -> None:
    assert len(TOML) > 20
    assert len(PYTHON) > 20
    assert len(CLOUD_INIT) == 1


def test_a_mistake_in_a_file_would_be_noticed(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError, match="adress"):
        read_startup('[[vms]]\nname = "web"\nadress = "10.0.0.1"\n', tmp_path)


@pytest.mark.parametrize(
    "block",
    [each for each in PYTHON if each.page in {"index.md", "install.md"}],
    ids=lambda block: block.place,
)
def test_the_first_test_that_a_reader_writes_passes(
    block: Block, scheduled_events: ScheduledEventsService
) -> None:
    module: dict[str, Any] = {}
    exec(block.text, module)  # noqa: S102 - a file of our own pages
    [test] = [each for name, each in module.items() if name.startswith("test_")]

    test(scheduled_events)
