"""The README's tour, run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.end_to_end.serving import Server, environment, serving

README: Final = Path(__file__).parents[2] / "README.md"
GUID: Final = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
DATE: Final = re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")


def test_the_tour_prints_what_the_readme_says(tmp_path: Path) -> None:
    steps = _console_steps(README.read_text())

    # Not paused: the emulator's clock as `make run` has it.
    with serving(tmp_path, "--clock", "1x") as server:
        printed = [(command, _run(command, server)) for command, _ in steps]

    for (command, expected), (_, actual) in zip(steps, printed, strict=True):
        if expected:
            assert _without_chance(actual) == _without_chance(expected), command
    incarnations = re.findall(r'"DocumentIncarnation":(\d+)', "".join(text for _, text in printed))
    assert incarnations == ["1", "2", "3", "4", "6"]


def test_the_curl_line_beside_make_run_prints_a_document(tmp_path: Path) -> None:
    [curl] = re.findall(r"^curl .*$", README.read_text(), flags=re.MULTILINE)

    with serving(tmp_path) as server:
        printed = _run(curl.replace("curl", "curl -s", 1), server)

    assert printed == '{"DocumentIncarnation":1,"Events":[]}'


def _console_steps(text: str) -> list[tuple[str, str]]:
    """Each command of the console blocks, with the output shown under it (if any is)."""
    steps: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            steps.append((command, output.strip()))
    return steps


def _run(command: str, server: Server) -> str:
    """Run a line of the README, on the ports that this test's server got."""
    line = command.replace("127.0.0.1:8169", server.metadata)
    line = line.replace(".venv/bin/notbefore", f"{sys.executable} -m notbefore")
    done = subprocess.run(
        ["sh", "-c", line],
        env=environment(NOTBEFORE_CONTROL=f"http://{server.control}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


def _without_chance(text: str) -> str:
    return DATE.sub("DATE", GUID.sub("GUID", text))
