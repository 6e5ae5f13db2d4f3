"""A machine with Python and nothing of ours: `make run` in a new checkout, and the curl line."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.server_process import environment, ready

ROOT: Final = Path(__file__).parents[2]


@pytest.mark.thorough  # `make test` in a fresh checkout is what CI does
def test_make_run_in_a_fresh_checkout_serves_a_document(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in _files():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)

    flags = "--metadata 127.0.0.1:0 --control 127.0.0.1:0"
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            ["make", "run", f"ARGS={flags}"],
            cwd=checkout,
            # Neither this test's environment nor the make that runs it may lend anything.
            env={n: v for n, v in environment().items() if n not in {"VIRTUAL_ENV", "MAKEFLAGS"}},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as running,
    ):
        try:
            answer = ready(running, tmp_path).get()
        finally:
            # make, and the server under it.
            os.killpg(running.pid, signal.SIGTERM)

    assert answer.body == b'{"DocumentIncarnation":1,"Events":[]}'
    assert (checkout / ".forewarned").is_dir()


def _files() -> list[str]:
    """What a clone would have, with what is about to be committed."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
