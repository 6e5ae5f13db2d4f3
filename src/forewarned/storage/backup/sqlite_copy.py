"""A copy of a SQLite database that a server may be writing to, and bringing it back."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from forewarned.security.files import PRIVATE, flush_directory
from forewarned.storage.backup.directory import BackupError
from forewarned.storage.sqlite.lock import sole_use
from forewarned.storage.sqlite.migrate import refuse_foreign, schema_version
from forewarned.storage.sqlite.restore_marker import opened_marker

_WAIT: Final = 30.0
"""Seconds, for a server that is just opening or closing its database."""


def copy_database(path: Path, target: Path) -> int:
    """The database as of one moment, verified. Returns its schema.

    Raises BackupError, CannotOpenError.
    """
    if not path.exists():
        raise BackupError(
            f"there is no store in {path.parent}: give the server's directory with --data"
        )
    try:
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_WAIT)) as source,
            closing(sqlite3.connect(target)) as copied,
        ):
            refuse_foreign(source, path)
            # In one step, so in one transaction: the server goes on writing to its log.
            source.backup(copied)
            # Without a log beside it, the copy is one file.
            copied.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise BackupError(f"can't read {path} ({error})") from error
    return verify_database(target)


def verify_database(path: Path) -> int:
    """Its schema. Raises BackupError if SQLite finds anything wrong with it, CannotOpenError."""
    try:
        # No one writes to it, and no file may be left beside it.
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            refuse_foreign(connection, path)
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
            foreign = connection.execute("PRAGMA foreign_key_check").fetchone()
            schema = schema_version(connection)
    except sqlite3.Error as error:
        found, foreign, schema = [str(error)], None, 0
    if found != ["ok"] or foreign is not None:
        told = (
            "; ".join(map(str, found))
            if found != ["ok"]
            else f"a row of {foreign[0]} refers to one that is missing"
        )
        raise BackupError(f"{path} is damaged ({told}): use an earlier backup")
    return schema


def restore_database(copy: Path, path: Path) -> None:
    """Where there is none. Its next start takes it for a restored one.

    Raises BackupError, CannotOpenError.
    """
    verify_database(copy)
    with sole_use(path):
        if path.exists():
            raise BackupError(
                f"{path} already exists: a restore never overwrites a store. Restore to an empty"
                " directory, or move the old store away"
            )
        draft = path.with_name(f".{path.name}.restored")
        try:
            shutil.copyfile(copy, draft)
            draft.chmod(PRIVATE)
            # Before the database has its name: a crash in between leaves none that seems unbroken.
            with opened_marker(path) as marker:
                marker.declare_restored()
            draft.rename(path)
            flush_directory(path.parent)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise BackupError(f"can't write {path} ({error.strerror or error})") from error
