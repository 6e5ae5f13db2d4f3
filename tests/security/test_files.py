"""Private, atomic, locked files."""

import os
import stat
from pathlib import Path

import pytest

from forewarned.security.files import (
    PUBLIC,
    InUseError,
    fingerprint,
    locked,
    locked_or_refused,
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


def test_a_changed_file_has_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "file"
    none = fingerprint(path)
    replace_file(path, b"one")
    one = fingerprint(path)
    replace_file(path, b"two")

    assert none == ()
    assert len({none, one, fingerprint(path)}) == 3
