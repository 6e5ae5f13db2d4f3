"""What tests read in the store, and change there because a client can't."""

from typing import Final

from tests.postgresql.servers import PostgresServer

_DUE: Final = """
    WITH due AS (
        UPDATE events
        SET not_before = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + %s
        WHERE id = %s
        RETURNING scope_id, not_before
    )
    UPDATE scopes
    SET next_wake = due.not_before, incarnation = incarnation + 1, revision = revision + 1,
        changed = pg_current_xact_id()
    FROM due WHERE scopes.id = due.scope_id
"""


def due_in(server: PostgresServer, database: str, event_id: str, seconds: float) -> None:
    """Bring an event's NotBefore near. In service mode a client has to give minutes of notice."""
    server.ask(_DUE, int(seconds * 1_000_000), event_id, database=database)


def started(server: PostgresServer, database: str, event_id: str) -> int:
    """How many times the event has started. I5: never twice."""
    query = "SELECT count(*) FROM history WHERE action = 'started' AND event_id = %s"
    [(count,)] = server.ask(query, event_id, database=database)
    return int(count)
