"""The wheel alone in empty environments, by what a user asks pip for."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.artefacts.programs import (
    PINS,
    Program,
    approve_by_agent,
    bare_environment,
    installed,
    read_with_curl,
    without,
)
from tests.end_to_end.server_process import serving
from tests.end_to_end.test_cli_access import FLEET, SERVICE
from tests.packages import give_up, install
from tests.postgresql.databases import Database
from tools.release.python_distributions import ROOT

PSYCOPG = ("psycopg", "psycopg-binary")


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return installed(tmp_path_factory.mktemp("base"), wheel, PINS / "agent.txt")


@pytest.fixture(scope="module")
def server(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("server")
    pins = without(PINS / "server.txt", *PSYCOPG, into=folder / "pins.txt")
    return installed(folder, wheel, pins, extras="[server]")


def test_the_base_install_has_the_agent(base: Program, tmp_path: Path) -> None:
    with serving(tmp_path) as emulator:
        approve_by_agent(base, emulator, tmp_path)


def test_the_base_install_has_the_sdk_and_the_cli(base: Program, tmp_path: Path) -> None:
    python = Path(base.command[0]).with_name("python")
    code = (
        "from forewarned.client import ScheduledEvents\n"
        "with ScheduledEvents() as scheduled: print(len(scheduled.document().events))"
    )

    with serving(tmp_path) as emulator:
        cli = base.told(FOREWARNED_CONTROL=f"http://{emulator.control}")
        sdk = Program(command=(str(python),)).told(
            FOREWARNED_ENDPOINT=f"http://{emulator.metadata}/vm/web"
        )
        before = sdk.run("-c", code, cwd=tmp_path).stdout
        cli.run("schedule", "reboot", "--vm", "web", cwd=tmp_path)
        after = sdk.run("-c", code, cwd=tmp_path).stdout

    assert (before, after) == ("0\n", "1\n")


def test_the_base_install_says_what_serving_needs(base: Program, tmp_path: Path) -> None:
    refused = base.run("serve", cwd=tmp_path, check=False)

    assert refused.returncode == 1
    assert "pip install 'forewarned[server]'" in refused.stderr


def test_a_server_answers_the_readmes_curl(server: Program, tmp_path: Path) -> None:
    with server.serving(tmp_path) as running:
        assert read_with_curl(running) == {"DocumentIncarnation": 1, "Events": []}
        assert running.call("GET", "/v1/health")


def test_a_server_without_psycopg_says_what_a_shared_store_needs(
    server: Program, tmp_path: Path
) -> None:
    (tmp_path / "fleet.toml").write_text(FLEET)
    store = ("--store", "postgresql://nowhere/forewarned")

    refused = server.run("serve", *SERVICE, *store, "--data", "state", cwd=tmp_path, check=False)

    assert refused.returncode == 2
    assert "forewarned[postgres]" in refused.stderr


def test_a_node_serves_from_postgresql(wheel: Path, database: Database, tmp_path: Path) -> None:
    node = installed(tmp_path, wheel, PINS / "server.txt", extras="[server,postgres]")
    (tmp_path / "fleet.toml").write_text(FLEET)

    with node.serving(tmp_path, *SERVICE, "--store", database.url) as running:
        answer = running.get(source="127.0.0.1")
        while answer.status == 503:  # until it has looked at the store
            answer = running.get(source="127.0.0.1")

    assert answer.json["Events"] == []


def test_libvirt_is_asked_for_its_vms(wheel: Path, tmp_path: Path) -> None:
    for package in ("gcc", "pkg-config", "libvirt-dev", "python3-dev"):
        install(package)
    if subprocess.run(["pkg-config", "--exists", "libvirt"], check=False).returncode:
        give_up("libvirt's library can't be built: `apt install gcc pkg-config libvirt-dev`")
    pins = [PINS / name for name in ("agent.txt", "libvirt-build.txt")]
    program = installed(tmp_path, wheel, *pins, PINS / "libvirt.txt", extras="[libvirt]")

    shown = program.run("fleet", "import", "libvirt", "test:///default", cwd=tmp_path).stdout

    assert "# test: its platform gives it no address" in shown


def test_a_project_of_ten_lines_tests_its_handler_with_the_wheel_and_the_docs(
    wheel: Path, tmp_path: Path
) -> None:
    """Everything it has is on the page: the file is copied from there."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    [(name, text)] = re.findall(r'```python title="(test_\w+\.py)"\n(.*?)```', page, re.DOTALL)
    (tmp_path / name).write_text(text)
    program = installed(tmp_path, wheel, PINS / "testing.txt", extras="[testing]")
    python = str(Path(program.command[0]).with_name("python"))

    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", name],
        cwd=tmp_path,
        env=bare_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert len([line for line in text.splitlines() if line]) <= 10
