"""What became of a transaction whose connection was lost while it was committed.

Invariant: a transaction is called committed only if it will never be undone, and rolled back only
if it has changed nothing.
"""

import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Final

import psycopg

from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.postgres.connection import DURABLE, RUN, Connection, Mark, warnings_of

PATIENCE: Final = 5.0
"""Seconds until an outcome is given up as unknown."""
_PAUSE: Final = 0.05
_WHERE: Final = f"""
    SELECT system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), epoch, {RUN}
    FROM store, pg_control_system()
"""


class Outcome(Enum):
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    UNKNOWN = "unknown"


def settle(mark: Mark, connect: Callable[[], Connection]) -> Outcome:
    """Ask, by a new connection, until PostgreSQL knows."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            with connect() as connection:
                outcome = _ask(connection, mark, until=until)
        except (psycopg.Error, StoreUnavailableError):
            outcome = None
        if outcome is not None:
            return outcome
        if time.monotonic() >= until:
            return Outcome.UNKNOWN
        # On a connection's own thread, and nothing else tells when there is an answer.
        time.sleep(_PAUSE)  # noqa: TID251


def _ask(connection: Connection, mark: Mark, *, until: float) -> Outcome | None:
    """None while it can't be known."""
    [[system_id, timeline, epoch, run]] = connection.execute(_WHERE).fetchall()
    if system_id != mark.system_id:
        # It has given out its numbers by itself, and a dump may have brought it the transaction.
        return Outcome.UNKNOWN
    try:
        row = connection.execute("SELECT pg_xact_status(%s::xid8)", [mark.xid]).fetchone()
    except psycopg.errors.InvalidParameterValue:
        # A number that this server has not given out yet: the transaction was lost in a failover.
        return Outcome.ROLLED_BACK
    [status] = row or [None]
    match status:
        case "aborted":
            return Outcome.ROLLED_BACK
        case "committed" if (timeline, epoch, run) == (mark.timeline, mark.epoch, mark.run):
            return _await_copies(connection, until)
        case "committed":
            # After a crash, a failover or a restore that lost transactions, their numbers are given
            # out again: this may be another one's.
            return Outcome.UNKNOWN
        case _:
            # Still in progress: its session may be waiting for a standby.
            return None


def _await_copies(connection: Connection, until: float) -> Outcome:
    """Wait until every copy has it that has to.

    A session that is ended while it waits for its standby has committed all the same. What is
    committed later is replicated later, so waiting for this one is waiting for that one too.
    """
    warnings = warnings_of(connection)
    connection.execute(DURABLE)
    connection.execute("SELECT pg_logical_emit_message(true, 'forewarned', '')")
    # PostgreSQL has no limit for this wait. A wait that is canceled succeeds, with a warning.
    alarm = threading.Timer(max(until - time.monotonic(), 0), connection.cancel)
    # Even to cancel is in vain where the server stands still.
    alarm.daemon = True
    alarm.start()
    try:
        connection.commit()
    finally:
        alarm.cancel()
    return Outcome.UNKNOWN if warnings else Outcome.COMMITTED
