"""Opens connections to PostgreSQL, and says what its errors mean.

Nothing is set for a whole session, because PgBouncer may give each transaction another one: what a
transaction needs is set in it. For the same reason statements are prepared only where the session
is the connection's own.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final, NamedTuple

import psycopg
from psycopg import IsolationLevel, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from forewarned.storage.errors import (
    CannotConnectError,
    CannotOpenError,
    FailedDatabaseError,
    LostConnectionError,
    MayNotReadError,
    NoSuchDatabaseError,
    NoTlsError,
    OtherNameError,
    ReadOnlyDatabaseError,
    SignInRefusedError,
    UnreachableDatabaseError,
    UntrustedCertificateError,
)
from forewarned.storage.postgres.server_connection import ServerConnection
from forewarned.storage.postgres.url import Target

Connection = psycopg.Connection[TupleRow]

RERUN: Final = (
    errors.UniqueViolation,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
)
"""Another transaction was in the way. The function is run again, and sees what that one did."""

_PREPARED_AFTER: Final = 3
"""Times that a statement is sent before PostgreSQL is told to remember how it carries it out.

A node sends the same two dozen again and again, and planning one costs more than carrying it out.
"""
_FIRST_SILENCE: Final = 10.0
"""Seconds. A server that stands still may have taken the connection all the same."""
DURABLE: Final = """
    SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                      WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)
"""
"""What a transaction begins with whose commit is confirmed, whatever the default is."""
LIMITS: Final = f"""
    {DURABLE},
           set_config('lock_timeout', '1s', true), set_config('statement_timeout', '5s', true),
           set_config('idle_in_transaction_session_timeout', '2s', true),
           set_config('tcp_user_timeout', '3000', true)
"""
"""What every writing transaction of a node begins with. The scopes of a node that stops are free in
seconds, and nothing is answered that is in memory only. No limit ends a commit that waits."""
RUN: Final = """
    (extract(epoch FROM CASE WHEN current_setting('server_version_num')::int < 150000
                             THEN pg_postmaster_start_time()
                             ELSE pg_stat_get_bgwriter_stat_reset_time() END) * 1000000)::bigint
"""
"""A number that is another one after each recovery from a crash.

PostgreSQL then reuses ids of transactions that had not reached its log, even of some that had been
visible: of those that waited for no disk. It also discards its statistics. To ask PostgreSQL 14
when can take seconds, so there the start of the server has to do, which does not tell if it went on
after one of its processes was killed.
"""
MARK: Final = f"""
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
           pg_current_xact_id()::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
           oldest_code, system_identifier, epoch,
           (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint, publishes, rules,
           incarnation_offset, {RUN}
    FROM store, pg_control_system()
"""
"""The columns of `Mark`. To be asked when scopes have been locked: waiting takes time."""


class Position(NamedTuple):
    """Where a store is, and how far it has got."""

    system_id: int
    """Of the server. Copies of it that stream have the same."""
    timeline: str
    epoch: int
    lsn: int
    """How much of its log the server had made durable, in bytes."""
    # Nodes of earlier versions kept the others only.
    incarnation_offset: int = 0
    """How far incarnations have been raised."""


class Mark(NamedTuple):
    """Of one transaction."""

    now: int
    """The store's clock, in microseconds since 1970."""
    xid: str
    timeline: str
    """Of the server, which gives out xids anew after a failover; after a crash `run` tells."""
    oldest_code: int
    """Nodes that know only earlier schemas must not change anything."""
    system_id: int
    epoch: int
    lsn: int
    """How much of its log the server had made durable, in bytes."""
    publishes: int
    """1 if there is a subscription."""
    rules: str
    """Those of all nodes, as JSON."""
    incarnation_offset: int
    run: int
    """As `RUN`."""

    @property
    def position(self) -> Position:
        return Position(
            self.system_id, self.timeline, self.epoch, self.lsn, self.incarnation_offset
        )


POSITION: Final = """
    system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), epoch,
    (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint, incarnation_offset
    FROM store, pg_control_system()
"""
"""What a question ends with to which the last columns of the answer are those of `Position`."""

Comparison = Callable[[Position], bool]
"""Whether a connection may be used that leads to a store at this position."""


def is_anything() -> Comparison:
    """For a store that is not compared with what a node has seen."""
    return lambda _: True


# libpq says what happened only in words. Where a server speaks another language than English, the
# error is a plain CannotConnectError with the server's own words. Of several hosts each has its own
# reason, and the first of these is told: what only an operator can change before what may pass.
_MEANINGS: Final[Mapping[type[CannotConnectError], str]] = {
    UntrustedCertificateError: r"certificate verify failed|root certificate file",
    OtherNameError: r"server certificate for .* does not match host name",
    NoTlsError: r"server does not support SSL",
    ReadOnlyDatabaseError: r"session is read-only|server is in hot standby",
    NoSuchDatabaseError: r'database ".*" does not exist|no such database',
    SignInRefusedError: (
        r"authentication failed|no password supplied|role .* does not exist|no such user"
        r"|no pg_hba.conf entry|not permitted to log in|permission denied for database"
    ),
    UnreachableDatabaseError: (
        r"Connection refused|No such file or directory|failed to resolve|could not translate"
        r"|timeout expired|timed out|No route to host|Network is unreachable|starting up"
        r"|shutting down"
    ),
}


def connect(target: Target, *, host: str | None = None) -> ServerConnection:
    """To any of its hosts, or to one of `target.hosts`. Raises CannotOpenError."""
    conninfo = target.conninfo if host is None else host
    try:
        connection = ServerConnection.connect(conninfo, prepare_threshold=None, autocommit=True)
        connection.longest_silence = _FIRST_SILENCE
        if is_direct(connection):
            connection.prepare_threshold = _PREPARED_AFTER
    except psycopg.Error as error:
        raise _connection_error(target.where, str(error)) from error
    connection.longest_silence = None
    connection.autocommit = False
    connection.isolation_level = IsolationLevel.READ_COMMITTED
    return connection


@contextmanager
def connected(target: Target) -> Iterator[ServerConnection]:
    """For a command, or while a node starts: it is closed at the end.

    Raises CannotOpenError, also for what PostgreSQL can't do in the block.
    """
    with closing(connect(target)) as connection:
        try:
            yield connection
        except errors.InsufficientPrivilege as error:
            # Who is to write has been told of missing rights before, by `migrate.prepare`.
            raise MayNotReadError(
                target.where, connection.info.user, _reason(str(error))
            ) from error
        except psycopg.Error as error:
            meaning = LostConnectionError if connection.closed else FailedDatabaseError
            raise meaning(target.where, _reason(str(error))) from error


def is_direct(connection: Connection) -> bool:
    """Whether the session is the connection's own, and not lent by PgBouncer for a transaction.

    The connection must be in autocommit.
    """
    [pid] = connection.execute("SELECT pg_backend_pid()").fetchone() or [None]
    # PgBouncer makes up the number that a client is given when it connects.
    return bool(pid == connection.info.backend_pid)


def host_of(connection: Connection, target: Target) -> str | None:
    """The one of `target.hosts` that it leads to; None if there is only one."""
    where = connection.info.host, str(connection.info.port)
    for host in target.hosts:
        given = conninfo_to_dict(host)
        if (given.get("host") or given.get("hostaddr"), str(given.get("port", 5432))) == where:
            return host
    return None


def warnings_of(connection: Connection) -> list[str]:
    """A list that each warning is added to from now on.

    A commit whose wait for a standby was canceled, by a timeout or a person, succeeds with one.
    """
    warnings: list[str] = []

    def hear(told: psycopg.errors.Diagnostic) -> None:
        if told.severity_nonlocalized == "WARNING":
            warnings.append(told.message_primary or "")

    connection.add_notice_handler(hear)
    return warnings


def _connection_error(where: str, message: str) -> CannotOpenError:
    reason = _reason(message)
    for meaning, pattern in _MEANINGS.items():
        if re.search(pattern, message):
            return meaning(where, reason)
    return CannotConnectError(where, reason)


def _reason(message: str) -> str:
    """libpq's message in one line: one reason for each host, without hints."""
    lines = [line for line in message.splitlines() if line and not line.startswith("\t")]
    each = [line for line in lines if line.startswith("- ")] or lines[:1]
    return "; ".join(line.rpartition("connection failed: ")[2].strip() for line in each)
