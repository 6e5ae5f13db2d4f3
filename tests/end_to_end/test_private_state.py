"""A real server's state, which no other user of its machine can read."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.server_process import WRITER_WORKERS, local_command, serving

PUBLIC = {"arm-ca.pem", "arm.pem"}


@pytest.fixture(autouse=True)
def _lenient_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> set[str]:
    return {
        path.name
        for path in (folder, *folder.iterdir())
        if stat.S_IMODE(path.lstat().st_mode) & 0o77
    }


@pytest.mark.parametrize("workers", WRITER_WORKERS)
def test_the_state_of_a_service_is_its_own_also_where_it_was_not_before(
    tmp_path: Path, workers: str
) -> None:
    service = ("--mode", "service", "--clock", "real", "--workers", workers)
    with serving(tmp_path, *service) as server:
        local_command(server, "token", "create", "alice", "--role", "admin")
        first = open_to_others(server.data)
    server.data.chmod(0o755)
    for path in server.data.iterdir():
        path.chmod(0o644)
    with serving(tmp_path, *service) as server:
        again = open_to_others(server.data)

    assert first == PUBLIC
    assert again == PUBLIC
    told = "other users could read the data directory; removed their access"
    assert told in (tmp_path / "log").read_text()


def test_an_emulators_database_and_keys_are_its_own(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "0") as server:
        assert open_to_others(server.data) == PUBLIC | {"state"}
