"""A backup as a directory: the store, the server's own small files, and a list of both.

Invariant: a directory under the name that was asked for is a whole backup. It is made under
another name, and takes its own when everything is on disk and was verified.
"""

import hashlib
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from forewarned.security.files import (
    CERTIFICATE,
    PRIVATE,
    PRIVATE_DIRECTORY,
    flush_directory,
    flush_file,
    locked_directory,
    replace_file,
)

MANIFEST: Final = "backup.json"
DATABASE_FILE: Final = "forewarned.db"
DUMP_FILE: Final = "forewarned.dump"
KEPT: Final = (
    *("identity-key.pem", "arm-ca-key.pem", "arm-ca.pem", "arm-key.pem", "arm.pem"),
    "principals.toml",
)
"""Files of the data directory that can't be made again: keys, certificates, digests of tokens."""
_PUBLIC: Final = frozenset({"arm-ca.pem", "arm.pem"})
"""Certificates, which clients of other users may have to read."""
_FORMAT: Final = 1
_DRAFT: Final = re.compile(r"\..+\.[0-9a-f]{8}\.unfinished")
# Younger ones may be about to be locked.
_ABANDONED_AFTER: Final = 60.0
_CHUNK: Final = 1 << 20


class BackupError(Exception):
    """A backup can't be made, or not be restored. The message says why, and what to do."""


class StoreKind(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


class BackedUp(msgspec.Struct, frozen=True):
    """One file, as it was when it was written."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    format: int = _FORMAT
    version: str
    """Forewarned's."""
    at: datetime
    store: StoreKind
    schema: int
    files: dict[str, BackedUp]

    @property
    def keys(self) -> list[str]:
        """What goes into the data directory besides a database."""
        return [name for name in self.files if name in KEPT]


@contextmanager
def drafted(place: Path) -> Iterator[Path]:
    """A directory to write a backup into, which gets its name at the end. Raises BackupError."""
    if place.exists() or place.is_symlink():
        raise BackupError(
            f"{place} already exists: a backup never overwrites anything, name another directory"
        )
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.unfinished")
    try:
        draft.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
        _remove_abandoned(place.parent, now=draft.stat().st_mtime)
        with ExitStack() as stack:
            # Some network file systems can't lock a directory: drafts there are never removed.
            with suppress(OSError):
                stack.enter_context(locked_directory(draft))
            yield draft
            for path in (*draft.iterdir(), draft):
                _flush(path)
            draft.rename(place)
        flush_directory(place.parent)
    except OSError as error:
        raise BackupError(f"can't write {place} ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(draft)


def _remove_abandoned(folder: Path, *, now: float) -> None:
    """Drafts of backups that were killed, whatever their names: no process locks those."""
    # A directory that can't be listed, or a draft of another user's, must not fail a backup.
    with suppress(OSError):
        for found in folder.iterdir():
            with suppress(OSError):
                is_old = found.lstat().st_mtime < now - _ABANDONED_AFTER
                if _DRAFT.fullmatch(found.name) and is_old and not found.is_symlink():
                    with locked_directory(found):
                        shutil.rmtree(found)


def copy_kept(data: Path, draft: Path) -> None:
    """The server's own files, as they are in its data directory."""
    for name in KEPT:
        # Each is replaced whole, so that a copy is the old content or the new.
        with suppress(FileNotFoundError):
            replace_file(draft / name, (data / name).read_bytes())


def write_manifest(
    draft: Path, *, version: str, at: datetime, store: StoreKind, schema: int
) -> Manifest:
    """Last, when all other files are there."""
    files = {path.name: _measured(path) for path in sorted(draft.iterdir())}
    manifest = Manifest(version=version, at=at, store=store, schema=schema, files=files)
    replace_file(draft / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return manifest


def verified(place: Path) -> Manifest:
    """The list of a backup, all of whose files are as they were written. Raises BackupError."""
    try:
        manifest = msgspec.json.decode((place / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise BackupError(f"{place} is not a backup: it has no {MANIFEST}") from error
    except OSError as error:
        raise BackupError(f"can't read {place} ({error.strerror or error})") from error
    except msgspec.DecodeError as error:
        raise BackupError(
            f"{place / MANIFEST} can't be read ({error}): use another backup"
        ) from error
    if manifest.format != _FORMAT:
        raise BackupError(
            f"{place} was made by Forewarned {manifest.version}, whose backups this version can't"
            " read: restore it with that version"
        )
    for name, expected in manifest.files.items():
        if Path(name).name != name:
            raise BackupError(f"{place / MANIFEST} names the file {name!r}, which is outside of it")
        _refuse_changed(place / name, expected)
    return manifest


def restore_kept(place: Path, data: Path, manifest: Manifest) -> list[str]:
    """Those that the data directory lacks. Raises BackupError if it has others."""
    missing = []
    for name in manifest.keys:
        try:
            found = (data / name).read_bytes()
        except FileNotFoundError:
            missing.append(name)
            continue
        if found != (place / name).read_bytes():
            raise BackupError(
                f"{data / name} already exists, and differs from the one in the backup: restore to"
                " an empty directory, or move that file away"
            )
    for name in missing:
        mode = CERTIFICATE if name in _PUBLIC else PRIVATE
        replace_file(data / name, (place / name).read_bytes(), mode=mode)
    return missing


def _refuse_changed(path: Path, expected: BackedUp) -> None:
    try:
        found = _measured(path)
    except OSError as error:
        raise BackupError(f"the backup lacks {path} ({error.strerror or error})") from error
    if found != expected:
        raise BackupError(
            f"{path} has changed since it was written ({found.bytes} bytes now, {expected.bytes}"
            " then): the backup is damaged, use another"
        )


def _measured(path: Path) -> BackedUp:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return BackedUp(path.stat().st_size, digest.hexdigest())


def _flush(path: Path) -> None:
    if path.is_dir():
        flush_directory(path)
        return
    path.chmod(PRIVATE)
    flush_file(path)
