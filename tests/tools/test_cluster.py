"""`make cluster`: what it prints works, and nothing is left when it ends."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.end_to_end.server_process import environment
from tests.end_to_end.supervised_server import is_alive
from tests.postgresql.servers import free_port, private_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder() -> Iterator[Path]:
    """For all that is temporary, away from a cluster that a person has started."""
    with private_folder() as made:
        yield made


def test_a_cluster_can_be_used_and_broken_as_it_says(folder: Path) -> None:
    command = [sys.executable, "-m", "tools.cluster"]
    surroundings = environment(TMPDIR=str(folder))

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with subprocess.Popen(
        [*command, f"--port={free_port()}"],
        cwd=ROOT,
        env=surroundings,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            told = _introduction(running)
            surroundings |= dict(re.findall(r"(FOREWARNED_\w+)=(\S+)", told))
            tour = re.findall(r"^  (?:curl|\S+/forewarned) .*$", told, re.MULTILINE)
            printed = [run("sh", "-c", line) for line in tour]
            console = urlopen(re.findall(r"at once: (http://\S+)", told)[0]).read().decode()
            killed = run(*command, "kill", "c")
            failed_over = run(*command, "failover")
            status = run(*command, "status")
            run(*command, "rejoin")
            run(*command, "start", "c")
            healed = run(*command, "status")
            family = _family(running.pid)
        finally:
            running.send_signal(signal.SIGINT)
            running.communicate()

    assert [_document(text) for text in printed if text.startswith("{")] == [
        (1, []),
        (3, [("Reboot", "Started")]),
        (4, []),
        (1, []),
    ]
    assert "Preempt Started" in printed[-1]
    assert "Sign in" in console
    assert "killed node c" in killed
    assert "the primary is at port" in failed_over
    assert "node c      does not run" in status
    assert "no standby" in status
    assert "does not run" not in healed
    assert "its standby at port" in healed
    assert len(family) > 9
    assert [pid for pid in family if is_alive(pid)] == []
    assert [path.name for path in folder.iterdir()] == []


def _document(text: str) -> tuple[int, list[tuple[str, str]]]:
    read = json.loads(text)
    return read["DocumentIncarnation"], [
        (event["EventType"], event["EventStatus"]) for event in read["Events"]
    ]


def _introduction(running: "subprocess.Popen[str]") -> str:
    assert running.stdout is not None
    told = ""
    for line in running.stdout:
        told += line
        if line.startswith("Ctrl-C ends all"):
            return told
    raise AssertionError(f"it ended early: {told}")


def _family(pid: int) -> list[int]:
    """The processes below this one, at any depth."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    parents = {int(p): int(q) for p, q in (row.split() for row in listed.stdout.splitlines())}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid, os.getpid()})
