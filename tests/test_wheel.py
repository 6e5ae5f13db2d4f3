"""The wheel, built and tried. `make test-packages` tries it alone, with each of its extras."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.end_to_end.server_process import environment
from tools.release.python_distributions import ROOT, build_wheel

A_TEST = """\
from forewarned.client import ScheduledEvents


def test_a_reboot_starts_once_it_is_approved(scheduled_events):
    vm = scheduled_events.vm("web")
    event = vm.schedule("Reboot")
    with ScheduledEvents(endpoint=vm.endpoint) as seen_by_vm:
        seen_by_vm.approve(event.id)
    assert event.status == "Started"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the wheel, and sees the pinned packages. The tree it was built from, it does not see."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(venv), "--disable-pip-version-check"]
    install = ["install", "--quiet", "--no-deps", "--no-compile", "--no-index", str(wheel)]
    subprocess.run([*pip, *install], check=True)
    [packages] = venv.glob("lib/python3*/site-packages")
    # The folder alone: Python reads no .pth of a folder that a .pth names, so not our editable one.
    (packages / "pinned.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return venv


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    """SQL, templates, styles and scenarios too, which only an installed server would miss."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "forewarned"],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=True,
    )
    tree = {name for name in listed.stdout.splitlines() if (ROOT / "src" / name).is_file()}

    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.startswith("forewarned-")}

    assert packed == tree


def test_the_installed_command_says_its_version(venv: Path, wheel: Path, tmp_path: Path) -> None:
    said = _run(venv / "bin" / "forewarned", "--version", cwd=tmp_path)

    assert said == f"forewarned {wheel.name.split('-')[1]}\n"


def test_the_installed_sdk_is_imported_from_the_wheel(venv: Path, tmp_path: Path) -> None:
    code = "import forewarned.client as c; print(c.ScheduledEvents.__name__, c.__file__)"

    name, path = _run(venv / "bin" / "python", "-c", code, cwd=tmp_path).split()

    assert name == "ScheduledEvents"
    assert Path(path).is_relative_to(venv)


def test_pytest_finds_the_installed_plugin(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "test_handler.py").write_text(A_TEST)
    flags = ("-q", "-p", "no:cacheprovider", "-W", "error")

    said = _run(venv / "bin" / "python", "-m", "pytest", *flags, cwd=tmp_path)

    assert "1 passed" in said


def _run(*command: str | Path, cwd: Path) -> str:
    lent = ("PYTEST", "PYTHON", "VIRTUAL_ENV", "COVERAGE", "COV_")
    variables = {n: v for n, v in environment().items() if not n.startswith(lent)}
    done = subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
