"""What a server says when it starts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forewarned.runtime import launch, single_process, supervisor
from forewarned.runtime.listeners.sockets import Addresses
from forewarned.runtime.settings import Resolved, load

ADDRESSES = Addresses(
    metadata_url="http://127.0.0.1:1", control_url="http://127.0.0.1:2", arm_url=None
)


@pytest.fixture(autouse=True)
def nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: Resolved, welcome: Callable[[Addresses], None]) -> None:
        welcome(ADDRESSES)

    monkeypatch.setattr(supervisor, "run", run)
    monkeypatch.setattr(single_process, "run", run)


@pytest.mark.parametrize(
    ("flags", "command"),
    [
        ({}, "`forewarned token create NAME --role ROLE`"),
        ({"data": "my fleet"}, "`forewarned token create NAME --role ROLE --data 'my fleet'`"),
    ],
)
def test_a_server_that_wants_tokens_says_how_to_make_one_for_it(
    flags: dict[str, str],
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token that is made in another directory than the server's is for no server."""
    monkeypatch.chdir(tmp_path)

    launch.run(load(flags={"mode": "service", **flags}, environ={}))

    assert f"Sign in:    with a token from {command}\n" in capsys.readouterr().out


def test_a_server_that_is_open_speaks_of_no_token(capsys: pytest.CaptureFixture[str]) -> None:
    launch.run(load(flags={}, environ={}))

    assert "Sign in" not in capsys.readouterr().out
