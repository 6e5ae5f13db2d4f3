"""Private, atomic, locked files."""

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest

from forewarned.security.files import (
    PUBLIC,
    InUseError,
    fingerprint,
    inheritable_lock,
    is_locked,
    locked,
    locked_directory,
    locked_or_refused,
    private_directory,
    replace_file,
)


def test_a_file_is_private_unless_it_is_said_to_be_public(tmp_path: Path) -> None:
    replace_file(tmp_path / "key", b"secret")
    replace_file(tmp_path / "report", b"ready", mode=PUBLIC)

    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) & 0o444 == 0o444


def test_a_file_that_can_not_be_written_whole_leaves_the_old_one_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "write", lambda _file, content: len(content) - 1)

    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "file", b"new")

    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_drafts_that_a_crash_left_are_removed_by_a_later_write(tmp_path: Path) -> None:
    others = [".file.0123abcd.txt", ".file.notahexa", ".other.0123abcd", "file.0123abcd"]
    for name in [".file.0123abcd", ".file.4567cdef", *others]:
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".file.89abcdef").write_bytes(b"of a writer at work")

    replace_file(tmp_path / "file", b"new")

    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"file", ".file.89abcdef", *others}


def test_a_directory_that_may_not_be_read_can_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with mode 0333. Root may read everything, so the refusals are made up."""
    real = os.open

    def refuse(path: os.PathLike[str], flags: int, mode: int = 0o777) -> int:
        if path == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, mode)

    def refuse_to_list(path: os.PathLike[str]) -> list[str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        patch.setattr(os, "listdir", refuse_to_list)
        patch.setattr(os, "scandir", refuse_to_list)
        replace_file(tmp_path / "file", b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_directory_that_can_not_be_flushed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fail_for_directories(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(file)

    monkeypatch.setattr(os, "fsync", fail_for_directories)

    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        replace_file(tmp_path / "file", b"new")


def test_a_link_is_replaced_and_never_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "file").symlink_to("precious")

    replace_file(tmp_path / "file", b"new")

    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert not (tmp_path / "file").is_symlink()


def test_a_lock_names_its_holder_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    with locked_or_refused(path), pytest.raises(InUseError) as refused, locked_or_refused(path):
        pass

    assert refused.value.holder == str(os.getpid())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with locked(path):
        pass


def test_a_lock_is_held_for_as_long_as_the_program_runs_that_inherits_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with inheritable_lock(path) as lock:
        program = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock])

    with program:
        while_it_runs = is_locked(path)
        with pytest.raises(BlockingIOError), inheritable_lock(path):
            pass

    assert while_it_runs
    assert not is_locked(path)
    assert not is_locked(tmp_path / "never made")


def test_a_directory_is_locked_once(tmp_path: Path) -> None:
    with locked_directory(tmp_path), pytest.raises(BlockingIOError), locked_directory(tmp_path):
        pass

    with locked_directory(tmp_path):
        pass


def test_a_private_directory_is_made_once_and_not_closed_later(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    mode_before = stat.S_IMODE(shared.stat().st_mode)

    for folder in (shared, tmp_path / "not" / "yet", tmp_path / "not" / "yet"):
        private_directory(folder)

    assert stat.S_IMODE(shared.stat().st_mode) == mode_before
    assert stat.S_IMODE((tmp_path / "not" / "yet").stat().st_mode) == 0o700


def test_a_changed_file_has_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "file"
    none = fingerprint(path)
    replace_file(path, b"one")
    one = fingerprint(path)
    replace_file(path, b"two")

    assert none == ()
    assert len({none, one, fingerprint(path)}) == 3
