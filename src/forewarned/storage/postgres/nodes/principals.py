"""The table of principals: people and programs outside the fleet, and what each may do."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from forewarned.config.values import DatabaseUrl
from forewarned.security.identities import Principal, Role
from forewarned.storage.postgres import migrate
from forewarned.storage.postgres.connection import DURABLE, connected
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.url import target
from forewarned.storage.rows import FoundRow, micros, to_instant

QUESTION: Final = """
    SELECT name, role, token_sha256, client_id, secret_sha256, expires_at
    FROM principals ORDER BY name
"""
_ADD: Final = """
    INSERT INTO principals (name, role, token_sha256, client_id, secret_sha256, expires_at)
    VALUES (?, ?, ?, ?, ?, ?)
"""
# Edits wait for each other. Nodes go on reading.
_LOCK: Final = "LOCK TABLE principals IN EXCLUSIVE MODE"


def to_principals(found: Sequence[FoundRow]) -> tuple[Principal, ...]:
    """Raises ValueError if a later version has written what this one does not know."""
    return tuple(
        Principal(
            name=row["name"],
            role=Role(row["role"]),
            token_sha256=row["token_sha256"],
            client_id=row["client_id"],
            secret_sha256=row["secret_sha256"],
            expires_at=None if row["expires_at"] is None else to_instant(row["expires_at"]),
        )
        for row in found
    )


def read(url: DatabaseUrl) -> tuple[Principal, ...]:
    """Changes nothing; none if the tables are not this version's yet. Raises CannotOpenError."""
    place = target(url)
    with connected(place) as connection:
        steps = migrate.migrations()
        schema, _ = migrate.schema_version(connection, place.where, steps)
        if schema < steps[-1].number:
            return ()
        return to_principals(PostgresDatabase(connection).ask(QUESTION))


@contextmanager
def edited(url: DatabaseUrl) -> Iterator[list[Principal]]:
    """The principals, to be changed in place. For commands: the nodes follow within a second.

    Makes the tables where there are none yet: the first token comes before the first server.
    Raises CannotOpenError.
    """
    place = target(url)
    with connected(place) as connection:
        migrate.prepare(connection, place.where)
        database = PostgresDatabase(connection)
        # Without a node's limits: commands wait for each other.
        database.ask(DURABLE)
        database.write(_LOCK)
        before = to_principals(database.ask(QUESTION))
        principals = list(before)
        yield principals
        for gone in set(before) - set(principals):
            database.write("DELETE FROM principals WHERE name = ?", (gone.name,))
        for new in principals:
            if new not in before:
                database.write(_ADD, _row(new))
        connection.commit()


def _row(principal: Principal) -> tuple[str | int | None, ...]:
    return (
        principal.name,
        principal.role.value,
        principal.token_sha256,
        principal.client_id,
        principal.secret_sha256,
        micros(principal.expires_at),
    )
