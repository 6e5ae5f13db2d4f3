"""What `forewarned run` refuses. What it does is in tests/end_to_end/test_run.py."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from forewarned.control.v1.app import create_app
from tests.cli.served import Served, invoke

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--", "no-such-program"], 127, "can't run 'no-such-program' (No such file"),
        (["--", "/"], 126, "can't run '/' (Permission denied)"),
        (["--as", "wbe", "--", "true"], 1, "did you mean web?"),
        ([], 2, "Missing argument"),
    ],
)
def test_what_can_not_be_run_says_why(
    served: Served, words: Sequence[str], code: int, said: str
) -> None:
    result = served.run("run", "--isolation", "none", *words)

    assert result.exit_code == code
    assert said in result.stderr


def test_what_follows_the_command_is_the_commands(served: Served) -> None:
    assert served.run("run", "sh", "-c", "exit 9", "--as", "nobody").exit_code == 9


def test_a_server_that_was_named_has_to_be_there() -> None:
    result = invoke("run", "true", FOREWARNED_CONTROL="127.0.0.1:1")

    assert result.exit_code == 3
    assert "no server answers at http://127.0.0.1:1" in result.stderr


def test_a_server_of_real_events_has_no_vms_to_be(served: Served) -> None:
    real = replace(served.steered.services, mode="service")
    served.steered.app.router.routes[:] = create_app(real).router.routes

    result = served.run("run", "true")

    assert result.exit_code == 1
    assert "is not an emulator" in result.stderr


def test_an_emulator_that_can_not_start_says_why(tmp_path: Path) -> None:
    result = invoke("run", "--fleet", str(tmp_path / "none.toml"), "true")

    assert result.exit_code == 1
    assert "none.toml: No such file" in result.stderr


def test_a_signal_that_comes_before_the_command_does_ends_it_all(served: Served) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        signal.raise_signal(signal.SIGUSR2)
        result = served.run("run", "sh", "-c", "exit 9")
    finally:
        signal.sigtimedwait({signal.SIGUSR2}, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    assert result.exit_code == 128 + signal.SIGUSR2
