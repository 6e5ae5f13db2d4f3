"""A soak of some seconds: three real nodes, VMs, operators, an actuator, and who is told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import give_up
from tests.postgresql.servers import NoServerError, programs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.thorough  # `make soak` is the test; this one sees that it can be run
def test_a_short_soak_uses_all_nodes_and_finds_no_law_broken(tmp_path: Path) -> None:
    """I6, I7"""
    try:
        programs()
    except NoServerError as error:
        give_up(str(error))
    flags = {"--minutes": 0.4, "--vms": 50, "--polls": 50, "--speed": 10_000, "--every": 4}
    words = [f"{name}={value}" for name, value in flags.items()]

    ran = subprocess.run(
        [sys.executable, "-m", "tools.soak", *words, "--json", f"--output={tmp_path / 'told'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "told").read_text() == ran.stdout
    told = json.loads(ran.stdout)
    assert told["faults"] == []
    wanted = ("poll", "wait", "schedule", "readiness", "approve", "complete", "carry out")
    assert {what: told["done"].get(what, 0) > 0 for what in wanted} == dict.fromkeys(wanted, True)
    assert told["messages"] > 0
    assert len(told["samples"]) == 6
