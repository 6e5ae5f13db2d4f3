"""What `make fuzz` sends to /v1 for an hour, for seconds: requests made from its own description."""

import subprocess
from pathlib import Path

from tests.control.control_thread import ControlThread
from tests.effort import amount
from tests.fuzz.test_fuzz import SEED
from tests.packages import give_up
from tools.fuzz.packages import are_installed, environment
from tools.fuzz.v1 import requests_to


def test_every_operation_of_v1_answers_as_its_description_says(tmp_path: Path) -> None:
    if not are_installed():
        give_up("schemathesis is not installed: `make .venv-fuzz/.fuzz` brings it")

    with ControlThread() as control:
        run = subprocess.run(
            [
                *requests_to(control.url, "run"),
                *("--phases", "fuzzing", "--max-examples", str(amount(5, 100))),
                *("--seed", str(SEED), "--generation-database", "none"),
            ],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    assert run.returncode == 0, run.stdout + run.stderr
