"""The part of docs/test-your-handler.md for tests that are not Python, run as it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.server_process import environment
from tests.end_to_end.test_run import needs_namespaces

PAGE = (Path(__file__).parents[2] / "docs" / "test-your-handler.md").read_text()
SECTION = PAGE.partition("## Programs in other languages")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^forewarned run .*-- (?!go).*$", SECTION, re.MULTILINE)


@needs_namespaces
@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_in_another_language_runs(tmp_path: Path, command: str) -> None:
    needed = "node" if "node" in command else "jq"
    if shutil.which(needed) is None:
        pytest.skip(f"there is no {needed} here")
    for name, text in re.findall(
        r'^```\w+ title="([\w.]+)"\n(.*?)^```', SECTION, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=environment(PATH=found),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_one_for_the_shell_and_one_for_node() -> None:
    assert [command.rpartition(" -- ")[2] for command in COMMANDS] == [
        "./test_drain.sh",
        "node --test",
    ]
