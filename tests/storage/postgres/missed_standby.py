"""A server that waits for a synchronous standby that is not there."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg

from forewarned.storage.postgres.connection import warnings_of
from tests.postgresql.databases import Database
from tests.postgresql.servers import PostgresServer


@contextlib.contextmanager
def missed_standby(server: PostgresServer) -> Iterator[None]:
    server.set("synchronous_standby_names", "absent")
    while not is_awaiting_standby(server):
        pass
    try:
        yield
    finally:
        server.set("synchronous_standby_names", "")


def is_awaiting_standby(server: PostgresServer) -> bool:
    """Servers take a moment to read their settings."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        warnings = warnings_of(connection)
        alarm = threading.Timer(0.1, connection.cancel)
        alarm.start()
        connection.execute("SELECT pg_logical_emit_message(true, 'test', '')")
        alarm.cancel()
    return bool(warnings)


def waiting(database: Database, event: str) -> list[Any]:
    """The sessions of nodes and commands that wait for this."""
    return database.ask(
        "SELECT pid FROM pg_stat_activity WHERE datname = %s AND application_name = 'forewarned'"
        " AND (wait_event_type = %s OR wait_event = %s)",
        database.name,
        event,
        event,
    )
