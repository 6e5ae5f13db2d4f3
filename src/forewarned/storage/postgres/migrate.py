"""Migrates a database to the schema of this version, one numbered step after another.

A step and its number are one transaction, and one node at a time runs one: any number of nodes may
start at once. Steps only add, so that nodes of the version before go on working meanwhile.
"""

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from psycopg import Connection
from psycopg.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable
from psycopg.rows import TupleRow

from forewarned.storage.errors import (
    BusyTablesError,
    ForeignTablesError,
    MayNotMigrateError,
    MissingRightsError,
    NewerDatabaseError,
    NoSchemaError,
    OlderNodesError,
    OldPostgresError,
    WrongEncodingError,
)
from forewarned.storage.postgres.nodes.listing import RUNNING

OLDEST_SERVER: Final = 14
_ONE_AT_A_TIME: Final = 0x466F726577617264
"""The advisory lock's number. Other programs don't use this database."""
_LOCK_TIMEOUT: Final = "2s"
"""A step that waits for a table keeps everyone else from it, too: so it is soon tried again."""
_TRIES: Final = 30
_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    sql: bytes

    @property
    def oldest_code(self) -> int:
        """Nodes that know the schema before this step go on working after it."""
        return max(self.number - 1, 1)


def migrations() -> list[Migration]:
    folder = files("forewarned.storage") / "sql" / "postgres"
    return sorted(
        (
            Migration(number=int(file.name.partition("_")[0]), sql=file.read_bytes())
            for file in folder.iterdir()
            if file.name.endswith(".sql")
        ),
        key=lambda migration: migration.number,
    )


def tables(steps: list[Migration]) -> list[str]:
    """The tables that the steps make."""
    created = rb"^CREATE (?:UNLOGGED )?TABLE (\w+)"
    found = (re.findall(created, step.sql, re.MULTILINE) for step in steps)
    return [name.decode() for names in found for name in names]


def prepare(connection: Connection[TupleRow], where: str) -> None:
    """Check the database and migrate it. `where` is how messages call it. Raises CannotOpenError.

    What is refused is left as it was. The connection must not be in a transaction.
    """
    refuse_server(connection, where)
    steps = migrations()
    for step in steps:
        _run(connection, where, steps, step)
    _refuse_missing_rights(connection, where, tables(steps))


def refuse_server(connection: Connection[TupleRow], where: str) -> None:
    """Servers and databases that this version can't use at all."""
    if connection.info.server_version < OLDEST_SERVER * 10_000:
        raise OldPostgresError(where, _dotted(connection.info.server_version), OLDEST_SERVER)
    encoding = connection.info.parameter_status("server_encoding") or "unknown"
    if encoding != "UTF8":
        raise WrongEncodingError(where, encoding)


def schema_version(
    connection: Connection[TupleRow], where: str, steps: list[Migration]
) -> tuple[int, int]:
    """The schema's number and the oldest code it serves; zeros if the database is empty.

    Raises ForeignTablesError, NewerDatabaseError.
    """
    names = tables(steps)
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND relkind = ANY('{r,p,v,m,f}')"
        " AND pg_table_is_visible(oid) ORDER BY relname",
        [names],
    ).fetchall()
    if not found:
        return 0, 0
    columns = connection.execute(
        "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass('store')"
        " AND attname IN ('schema', 'oldest_code', 'incarnation_offset')"
    ).fetchone()
    if columns != (3,):
        raise ForeignTablesError(where, [name for [name] in found])
    row = connection.execute("SELECT schema, oldest_code FROM store").fetchone()
    if row is None:
        raise ForeignTablesError(where, ["store"])
    schema, oldest_code = row
    newest = steps[-1].number
    if oldest_code > newest:
        raise NewerDatabaseError(where, schema, newest)
    return schema, oldest_code


def _run(
    connection: Connection[TupleRow], where: str, steps: list[Migration], step: Migration
) -> None:
    """Run one step, unless it has been run."""
    for _ in range(_TRIES):
        try:
            with connection.transaction():
                _run_once(connection, where, steps, step)
        except (LockNotAvailable, DeadlockDetected):
            continue
        return
    raise BusyTablesError(where)


def _run_once(
    connection: Connection[TupleRow], where: str, steps: list[Migration], step: Migration
) -> None:
    try:
        version, _ = schema_version(connection, where, steps)
        if version >= step.number:
            return
        connection.execute("SELECT set_config('lock_timeout', %s, true)", [_LOCK_TIMEOUT])
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_AT_A_TIME])
        # Another node may have run it while this one waited.
        version, _ = schema_version(connection, where, steps)
        if version >= step.number:
            return
        if version:
            _refuse_older_nodes(connection, where, step)
        else:
            _refuse_closed_schema(connection, where)
        connection.execute(step.sql)
        connection.execute(
            "UPDATE store SET schema = %s, oldest_code = %s", [step.number, step.oldest_code]
        )
    except InsufficientPrivilege as error:
        raise MayNotMigrateError(where, _role(connection), str(error).partition("\n")[0]) from error


def _refuse_older_nodes(connection: Connection[TupleRow], where: str, step: Migration) -> None:
    """A node that is two versions behind would write what is no longer expected."""
    older = connection.execute(
        f"SELECT name FROM nodes WHERE speaks < %s AND {RUNNING} ORDER BY name",
        [step.oldest_code],
    ).fetchall()
    if older:
        raise OlderNodesError(where, [name for [name] in older])


def _refuse_closed_schema(connection: Connection[TupleRow], where: str) -> None:
    row = connection.execute(
        "SELECT current_schema(), has_schema_privilege(current_schema(), 'CREATE')"
    ).fetchone()
    schema, may_create = row or (None, None)
    if schema is None:
        raise NoSchemaError(where, _role(connection))
    if not may_create:
        raise MayNotMigrateError(where, _role(connection), f"may not create tables in {schema}")


def _refuse_missing_rights(connection: Connection[TupleRow], where: str, names: list[str]) -> None:
    with connection.transaction():
        missing = connection.execute(
            'SELECT name, "right" FROM unnest(%s::text[]) name, unnest(%s::text[]) "right"'
            ' WHERE NOT has_table_privilege(name, "right")',
            [names, list(_RIGHTS)],
        ).fetchone()
    if missing is not None:
        name, right = missing
        raise MissingRightsError(where, _role(connection), f"lacks the privilege {right} on {name}")


def _role(connection: Connection[TupleRow]) -> str:
    return connection.info.user


def _dotted(version: int) -> str:
    return f"{version // 10_000}.{version % 10_000}"
