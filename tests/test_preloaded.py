"""A command that was forked is a process as any other."""

import os
import signal
from pathlib import Path

from tests import preloaded


def test_it_has_arguments_a_directory_an_environment_and_streams_of_its_own(tmp_path: Path) -> None:
    variables = {"FOREWARNED_DATA": "elsewhere", "FOREWARNED_CONFIG": "settings.toml"}
    (tmp_path / "settings.toml").write_text('log_level = "debug"')
    with (
        (tmp_path / "errors").open("w") as errors,
        preloaded.start(
            "settings", "--json", folder=tmp_path, environment=variables, errors=errors
        ) as shown,
    ):
        told = shown.stdout.read()

    assert shown.returncode == 0
    assert '"elsewhere"' in told
    assert '"debug"' in told
    assert (tmp_path / "errors").read_text() == ""
    assert "FOREWARNED_DATA" not in os.environ


def test_how_it_ended_is_known_here(tmp_path: Path) -> None:
    with (
        (tmp_path / "errors").open("w") as errors,
        preloaded.start("nonsense", folder=tmp_path, environment={}, errors=errors) as refused,
        preloaded.start(
            "serve", "--workers", "0", folder=tmp_path, environment={}, errors=errors
        ) as killed,
    ):
        assert refused.wait() == 2
        killed.kill()
        assert killed.wait() == -signal.SIGKILL
    assert "No such command 'nonsense'" in (tmp_path / "errors").read_text()
