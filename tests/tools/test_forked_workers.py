"""Tests that several processes run are reported as if one had run them."""

import subprocess
import sys
from pathlib import Path

CONFTEST = """
import os
from tests.forked_workers import ForkedWorkers

os.environ["COLLECTED_BY"] = str(os.getpid())

def pytest_configure(config):
    config.pluginmanager.register(ForkedWorkers({count}))
"""
MODULES = {
    "test_one.py": """
import os

def test_says_why_it_fails():
    print("what it has printed")
    assert 1 == 2

def test_ends_its_process():
    os._exit(3)

def test_is_run_all_the_same():
    pass
""",
    "test_other.py": """
import os, pathlib, pytest

@pytest.fixture(scope="module")
def shared():
    yield os.getpid()
    pathlib.Path("torn-down").write_text(str(os.getpid()))

@pytest.mark.parametrize("number", range(3))
def test_has_what_its_module_shares(shared, number):
    assert shared == os.getpid() != int(os.environ["COLLECTED_BY"])

@pytest.mark.skip(reason="not today")
def test_is_skipped():
    pass
""",
}


def run(folder: Path, *flags: str, count: int = 2) -> "subprocess.CompletedProcess[str]":
    (folder / "conftest.py").write_text(CONFTEST.format(count=count))
    for name, text in MODULES.items():
        (folder / name).write_text(text)
    alone = ("-c", "/dev/null", "--rootdir", str(folder), "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *alone, "-ra", *flags],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_test_is_reported_once_and_a_module_is_run_by_one_process(tmp_path: Path) -> None:
    done = run(tmp_path)

    assert "2 failed, 4 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
    assert "FAILED test_one.py::test_says_why_it_fails - assert 1 == 2" in done.stdout
    assert "what it has printed" in done.stdout
    assert (tmp_path / "torn-down").exists()


def test_a_test_that_ends_its_process_is_named_and_the_rest_is_run(tmp_path: Path) -> None:
    done = run(tmp_path)

    assert "test_ends_its_process" in done.stdout
    assert "the process that ran this test ended with status 3" in done.stdout


def test_after_the_first_failure_no_other_module_is_begun(tmp_path: Path) -> None:
    done = run(tmp_path, "--exitfirst", count=1)

    assert "2 failed, 1 passed in" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
