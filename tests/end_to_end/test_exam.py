"""Our own agent, SDK and example handlers take the whole examination."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.scenarios.sandboxes import needs_namespaces

ROOT = Path(__file__).resolve().parents[2]
HANDLERS = ROOT / "examples" / "handlers"
LONG = 600

pytestmark = [pytest.mark.thorough, needs_namespaces]

RULES = """
[agent]
state = "{state}"

[[rules]]
name = "all"
leader = "first-resource"
"""


def exam(*words: str, options: Sequence[str] = ()) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "forewarned", "exam", "--patience", "3", *options, "--", *words],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
        cwd=ROOT,
    )
    return f"{run.stdout}{run.stderr}"


def test_the_agent_reaches_the_highest_grade(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    file = tmp_path / "agent.toml"
    file.write_text(RULES.format(state=state))
    agent = [sys.executable, "-m", "forewarned", "agent", "run", "--config", str(file)]

    told = exam(*agent, options=["--private", str(state)])

    assert "Grade: exemplary." in told, told


def test_a_handler_made_with_the_sdk_reaches_the_highest_grade() -> None:
    told = exam(sys.executable, "tests/scenarios/sdk_handler.py")

    assert "Grade: exemplary." in told, told


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node")
def test_the_example_for_node_reaches_the_highest_grade() -> None:
    told = exam("node", str(HANDLERS / "handler.mjs"))

    assert "Grade: exemplary." in told, told


@pytest.mark.skipif(not shutil.which("go"), reason="there is no Go")
def test_the_example_for_go_reaches_the_highest_grade(tmp_path: Path) -> None:
    handler = tmp_path / "handler"
    build = ["go", "build", "-o", str(handler), str(HANDLERS / "handler.go")]
    subprocess.run(build, check=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})

    told = exam(str(handler))

    assert "Grade: exemplary." in told, told
