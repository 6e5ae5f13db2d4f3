"""What can be seen of a store without changing it, even while a server uses it."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from forewarned.storage import rows
from forewarned.storage.relational.snapshot import UNFINISHED
from forewarned.storage.sqlite.lock import holder_of
from forewarned.storage.sqlite.migrate import migrations, refuse_foreign, schema_version

_WAIT: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    schema: int
    newest: int
    """This version's."""
    damage: str = ""
    """What SQLite finds wrong; empty for nothing."""
    last_change_at: datetime | None = None
    """By the server's clock; None if there was no change."""
    is_unfinished: bool = False
    """Whether a copy of another store into this one was interrupted."""
    holder: str | None = None
    """The process that has it open; None if none has."""


def examine_file(path: Path) -> Examined:
    """Raises CannotOpenError."""
    newest = migrations()[-1].number
    try:
        with closing(_connected(path.absolute())) as connection:
            refuse_foreign(connection, path)
            found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
            return Examined(
                schema=schema_version(connection),
                newest=newest,
                damage="" if found == ["ok"] else "; ".join(found),
                last_change_at=_last_change(connection),
                is_unfinished=_is_unfinished(connection),
                holder=holder_of(path),
            )
    except sqlite3.Error as error:
        return Examined(schema=0, newest=newest, damage=str(error), holder=holder_of(path))


def _connected(path: Path) -> sqlite3.Connection:
    # Without a log SQLite would make one to read by, and leave it there.
    has_log = path.with_name(f"{path.name}-wal").exists()
    how = "mode=ro" if has_log or holder_of(path) is not None else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=_WAIT)


def _last_change(connection: sqlite3.Connection) -> datetime | None:
    [last] = connection.execute("SELECT max(at) FROM history").fetchone()
    return None if last is None else rows.to_instant(last)


def _is_unfinished(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM notes WHERE key = ?", (UNFINISHED,)).fetchone()
    return found is not None
