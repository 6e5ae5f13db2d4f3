"""The README's tour, run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.end_to_end.server_process import Server, environment, serving
from tests.end_to_end.transcripts import steps, without_chance

README: Final = Path(__file__).parents[2] / "README.md"


def test_the_tour_prints_what_the_readme_says(tmp_path: Path) -> None:
    tour = steps(README.read_text())

    # Not paused: the emulator's clock as `make run` has it.
    with serving(tmp_path, "--clock", "1x") as server:
        printed = [_run(step.command, server) for step in tour]

    for step, text in zip(tour, printed, strict=True):
        if step.output:
            assert without_chance(text) == without_chance(step.output), step.command
    incarnations = re.findall(r'"DocumentIncarnation":(\d+)', "".join(printed))
    assert incarnations == ["1", "2", "3", "4", "6"]


def test_the_curl_line_beside_make_run_prints_a_document(tmp_path: Path) -> None:
    [curl] = re.findall(r"^curl .*$", README.read_text(), flags=re.MULTILINE)

    with serving(tmp_path) as server:
        printed = _run(curl.replace("curl", "curl -s", 1), server)

    assert printed == '{"DocumentIncarnation":1,"Events":[]}'


def _run(command: str, server: Server) -> str:
    """Run a line of the README, on the ports that this test's server got."""
    line = command.replace("127.0.0.1:8169", server.metadata)
    line = line.replace(".venv/bin/forewarned", f"{sys.executable} -m forewarned")
    done = subprocess.run(
        ["sh", "-c", line],
        env=environment(FOREWARNED_CONTROL=f"http://{server.control}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()
