"""A dump of a PostgreSQL database by its own program, and bringing it back.

The password is given in the environment, never on a command line that other users can see.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from psycopg import pq

from forewarned.config.values import DatabaseUrl
from forewarned.storage.backup.directory import DUMP_FILE, BackupError
from forewarned.storage.postgres.connection import connected
from forewarned.storage.postgres.migrate import migrations, refuse_server, schema_version
from forewarned.storage.postgres.url import Target, target
from forewarned.targets import environment

_NEEDED: Final = ("scopes", "resources", "events", "history", "notes", "store")
"""Tables without which a dump is no store."""


def dump_database(url: DatabaseUrl, draft: Path) -> int:
    """The database as of one moment. Returns its schema. Raises BackupError, CannotOpenError."""
    found = target(url, application="forewarned backup")
    program = _program("pg_dump", found, f"pg_dump --format=custom --file={DUMP_FILE} DATABASE")
    schema = _schema(found)
    if not schema:
        raise BackupError(
            f"{found.where} has none of Forewarned's tables: there is nothing to back up"
        )
    dump = draft / DUMP_FILE
    _run([program, "--format=custom", "--no-owner", "--no-acl", f"--file={dump}"], found)
    _verify(dump, found)
    return schema


def restore_dump(url: DatabaseUrl, dump: Path) -> None:
    """Into a database without tables. Nodes that start on it begin a new epoch.

    Raises BackupError, CannotOpenError.
    """
    found = target(url, application="forewarned restore")
    program = _program("pg_restore", found, f"pg_restore --dbname=DATABASE {dump}")
    if _has_tables(found):
        raise BackupError(
            f"{found.where} has tables already: a restore never overwrites a store. Make an empty"
            " database with `createdb`, and name that"
        )
    # All or nothing.
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-acl"]
    _run([program, *options, f"--dbname={_name(found)}", str(dump)], found)


def _verify(dump: Path, found: Target) -> None:
    """That it can be read to its end, and has the store's tables."""
    program = _program("pg_restore", found, f"pg_restore --list {dump}")
    listed = _run([program, "--list", str(dump)], found)
    missing = [name for name in _NEEDED if f"TABLE DATA public {name} " not in listed]
    if missing and "TABLE DATA" in listed:
        # Tables may be in another schema than the usual one.
        missing = [name for name in missing if f" {name} " not in listed]
    if missing:
        raise BackupError(f"the dump of {found.where} lacks {', '.join(missing)}")
    # Reads and unpacks every row, and throws it away.
    _run([program, f"--file={os.devnull}", str(dump)], found)


def _schema(found: Target) -> int:
    with connected(found) as connection:
        refuse_server(connection, found.where)
        schema, _ = schema_version(connection, found.where, migrations())
        return schema


def _has_tables(found: Target) -> bool:
    with connected(found) as connection:
        refuse_server(connection, found.where)
        row = connection.execute(
            "SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE relkind = 'r' AND n.nspname = current_schema()"
        ).fetchone()
        connection.rollback()
        return row is not None and row[0] > 0


def _program(name: str, found: Target, instead: str) -> str:
    program = shutil.which(name)
    if program is None:
        raise BackupError(
            f"{name} is not installed, and {found.where} is backed up and restored with it: install"
            f" PostgreSQL's client programs (Debian: postgresql-client), or run `{instead}` on a"
            " machine that has them"
        )
    return program


def _run(command: list[str], found: Target) -> str:
    done = subprocess.run(  # a program of PostgreSQL's, and our own arguments
        command, env=_environment(found), capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        why = said[0] if said else f"exit code {done.returncode}"
        raise BackupError(f"{Path(command[0]).name} failed for {found.where}: {why}")
    return done.stdout


def _environment(found: Target) -> dict[str, str]:
    """What libpq, by which these programs connect, is given by the URL or finds by itself."""
    options = [*pq.Conninfo.get_defaults(), *pq.Conninfo.parse(found.conninfo.encode())]
    values = {
        option.envvar.decode(): option.val.decode()
        for option in options
        if option.envvar is not None and option.val is not None
    }
    return {"PATH": environment.search_path(), "HOME": environment.home(), **values}


def _name(found: Target) -> str:
    options = pq.Conninfo.parse(found.conninfo.encode())
    given = {option.keyword: option.val for option in options}
    return (given[b"dbname"] or given[b"user"] or b"postgres").decode()
