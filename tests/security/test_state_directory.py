"""Who may look into the directory that a server keeps its state in."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarned.security import state_directory
from forewarned.security.state_directory import StateDirectoryError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _lenient_umask() -> Iterator[None]:
    """As most people have it: what is not closed by the server is open."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a server from before, with a file of its operator's in it."""
    made = tmp_path / "state"
    made.mkdir(mode=0o755)
    for name in (
        "forewarned.db",
        "forewarned.db-wal",
        "identity-key.pem",
        "feed-key.pem",
        "arm-ca.pem",
        "mine.txt",
    ):
        (made / name).touch(mode=0o644)
    return made


def test_a_service_makes_its_directory_for_itself_alone(tmp_path: Path) -> None:
    state_directory.prepare_private(tmp_path / "deep" / "state")

    assert mode(tmp_path / "deep" / "state") == 0o700


def test_a_service_closes_what_others_could_read_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state_directory.prepare_private(folder)

    assert mode(folder) == 0o700
    assert {path.name for path in folder.iterdir() if mode(path) == 0o600} == {
        "forewarned.db",
        "forewarned.db-wal",
        "identity-key.pem",
        "feed-key.pem",
    }
    assert len(caplog.records) == 2

    state_directory.prepare_private(folder)
    assert len(caplog.records) == 2


def test_an_emulators_files_are_closed_and_its_certificate_can_be_found(folder: Path) -> None:
    """Whoever started it with sudo has az read the certificate as themselves."""
    state_directory.prepare(folder)

    assert mode(folder) == 0o755
    assert mode(folder / "arm-ca.pem") == 0o644
    assert mode(folder / "forewarned.db") == 0o600


def test_a_directory_that_all_share_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)

    with pytest.raises(StateDirectoryError, match=r"shared by all users .* --data"):
        state_directory.prepare_private(tmp_path / "tmp")

    assert mode(tmp_path / "tmp") == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_directory_of_somebody_elses_is_refused_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(folder, 1, 1)
    # From here on down: nobody else gets through the directories above.
    folder.parent.chmod(0o755)
    monkeypatch.chdir(folder.parent)
    os.seteuid(65534)
    try:
        with pytest.raises(StateDirectoryError, match=r"belongs to .*chown -R.*--data"):
            state_directory.prepare_private(Path(folder.name))
    finally:
        os.seteuid(0)

    assert mode(folder) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may use it all the same")
def test_root_is_warned_of_a_directory_of_somebody_elses(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.chown(folder, 1, 1)

    state_directory.prepare_private(folder)

    assert "belongs to another user" in caplog.messages[0]
    assert mode(folder) == 0o700


def test_a_directory_that_can_not_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StateDirectoryError, match=r"can't create the directory .* --data"):
        state_directory.prepare(tmp_path / "file" / "state")
