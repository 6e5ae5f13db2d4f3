"""A data directory of the old name is taken over, once, with all that is in it."""

import logging
import sqlite3
from pathlib import Path

import pytest

from forewarned.runtime.takeover import take_over
from forewarned.storage.errors import StoreInUseError
from forewarned.storage.sqlite.lock import sole_use

DEFAULT = Path(".forewarned")
OLD = Path(".notbefore")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def an_old_directory(folder: Path = OLD) -> Path:
    """With a row that is in the write-ahead log alone, as a killed server leaves it."""
    folder.mkdir()
    live = Path("live.db")
    connection = sqlite3.connect(live, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE kept (word)")
    connection.execute("INSERT INTO kept VALUES ('here')")
    for part in ("", "-wal", "-shm"):
        (folder / f"notbefore.db{part}").write_bytes(Path(f"live.db{part}").read_bytes())
    connection.close()
    (folder / "identity-key.pem").write_text("key")
    return folder


def kept(folder: Path) -> list[tuple[str]]:
    connection = sqlite3.connect(folder / "forewarned.db")
    try:
        return connection.execute("SELECT word FROM kept").fetchall()
    finally:
        connection.close()


def test_the_old_default_directory_is_renamed_and_nothing_in_it_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    an_old_directory()

    with caplog.at_level(logging.INFO):
        take_over(DEFAULT, default=DEFAULT)

    assert not OLD.exists()
    assert kept(DEFAULT) == [("here",)]
    assert (DEFAULT / "identity-key.pem").read_text() == "key"
    assert [record.message for record in caplog.records] == [
        "took over a data directory that was made under the product's old name"
    ]


def test_it_is_taken_over_once(caplog: pytest.LogCaptureFixture) -> None:
    an_old_directory()
    take_over(DEFAULT, default=DEFAULT)
    caplog.clear()

    with caplog.at_level(logging.INFO):
        take_over(DEFAULT, default=DEFAULT)

    assert caplog.records == []


def test_a_directory_that_was_named_by_its_operator_stays_where_it_is() -> None:
    mine = an_old_directory(Path("mine"))

    take_over(mine, default=DEFAULT)

    assert kept(mine) == [("here",)]


def test_another_directory_than_the_default_leaves_the_old_default_alone() -> None:
    an_old_directory()

    take_over(Path("mine"), default=DEFAULT)

    assert (OLD / "notbefore.db").exists()
    assert not Path("mine").exists()


def test_a_new_directory_is_not_replaced() -> None:
    an_old_directory()
    DEFAULT.mkdir()

    take_over(DEFAULT, default=DEFAULT)

    assert (OLD / "notbefore.db").exists()
    assert list(DEFAULT.iterdir()) == []


@pytest.mark.parametrize("moved", ["-wal", "-shm"])
def test_a_move_that_was_cut_off_is_completed(moved: str) -> None:
    an_old_directory(DEFAULT)
    (DEFAULT / f"notbefore.db{moved}").rename(DEFAULT / f"forewarned.db{moved}")

    take_over(DEFAULT, default=DEFAULT)

    assert kept(DEFAULT) == [("here",)]


def test_a_directory_whose_server_still_runs_is_left_alone() -> None:
    an_old_directory()

    with sole_use(OLD / "notbefore.db"), pytest.raises(StoreInUseError):
        take_over(DEFAULT, default=DEFAULT)

    assert (OLD / "notbefore.db").exists()
