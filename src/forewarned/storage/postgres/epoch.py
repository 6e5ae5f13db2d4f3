"""Notices that the store may have lost what was already shown, and begins a new epoch of it.

A failover to a standby that was behind, a backup put back, a dump restored: all leave a store that
no longer knows what VMs have read since. So the first node to connect to such a store raises all
incarnations (I7), and every node reads everything anew.

Invariant: nothing else is asked on a connection before it has been checked here.
"""

import contextlib
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from forewarned.clock import monotonic_ns
from forewarned.service.restoration import Restoration, next_offset
from forewarned.storage import rows
from forewarned.storage.errors import ReplacedServerError
from forewarned.storage.postgres.connection import Comparison, Connection, Position
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.rows import FoundRow

_log = logging.getLogger(__name__)

_FILE: Final = "store-position"
_WRITE_EVERY: Final = 50_000_000
"""Nanoseconds."""
_FOUND: Final = """
    SELECT system_identifier AS system_id, tableoid::bigint AS relation,
           substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
           (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint AS lsn,
           floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
           store.system_id AS known_system_id, store.relation AS known_relation,
           store.timeline AS known_timeline, epoch, incarnation_offset
    FROM store, pg_control_system()
"""
_LIMITS: Final = """
    SELECT set_config('lock_timeout', '5s', true), set_config('statement_timeout', '0', true)
"""
# Transactions that write scopes have read the offset before: they finish first, and others begin
# after it. In this order, in which they take their locks too.
_LOCK: Final = "LOCK TABLE scopes, store IN EXCLUSIVE MODE"
_MOVE: Final = """
    UPDATE store SET system_id = :system_id, timeline = :timeline, relation = :relation,
                     epoch = :epoch, incarnation_offset = :offset
"""
# Ids of transactions that this server has not used yet would be news for ever.
_MARKED: Final = ("scopes", "resources", "unbound", "history")
_REMARK: Final = """
    INSERT INTO history (at, actor, address, action, scope_id, resources, cause)
    VALUES (:at, 'server', '', 'store_restored', '', '[]', :cause)
"""
_NOTE: Final = """
    INSERT INTO notes (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""


@dataclass(slots=True)
class PositionFile:
    """The last position in the data directory, so that a node that starts again knows it."""

    folder: Path

    def read(self) -> Position | None:
        """None if there is none, or none that can be read."""
        with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
            return msgspec.json.decode((self.folder / _FILE).read_bytes(), type=Position)
        return None

    def write(self, position: Position) -> None:
        """Without waiting for the disk: a position that is behind notices less, and that is all."""
        draft = self.folder / f"{_FILE}.new"
        draft.write_bytes(msgspec.json.encode(position))
        draft.replace(self.folder / _FILE)


class EpochCheck:
    """Compares what a connection leads to with what this node knows of the store.

    All connections of a node share one, from several threads.
    """

    def __init__(self, last: Position | None, file: PositionFile | None = None) -> None:
        """`file` is where the position is kept from now on."""
        self.last = last
        """The furthest that this node has seen; None if it has seen nothing."""
        self._file = file
        self._write_at = 0
        self._is_written = True
        self._lock = threading.Lock()

    def __call__(self, connection: Connection) -> int:
        """For a new connection, before anything else is done with it. Commits. Returns the epoch.

        Raises ReplacedServerError.
        """
        database = PostgresDatabase(connection)
        # Read before the store is: another thread may see it get further meanwhile.
        known = last = self.last
        found = _found(database)
        while (reason := _reason(found, last) or _too_low(found, known)) is not None:
            _begin(database, found, reason, known)
            connection.commit()
            # Another node may have been quicker, and then its step is as good if it goes as far.
            last = None
            found = _found(database)
        connection.commit()
        position = _position(found)
        self.saw(position)
        return position.epoch

    def saw(self, position: Position) -> None:
        with self._lock:
            last = self.last
            is_later = last is None or position.epoch > last.epoch
            is_further = last is not None and position[:3] == last[:3] and position > last
            if is_later or is_further:
                highest = max(position.incarnation_offset, self._highest)
                self.last = position._replace(incarnation_offset=highest)
                self._is_written = False
            # What was not written is written when this is next called: nodes look all the time.
            if self.last is None or self._file is None or self._is_written:
                return
            if is_later or monotonic_ns() >= self._write_at:
                self._write_at = monotonic_ns() + _WRITE_EVERY
                self._file.write(self.last)
                self._is_written = True

    @property
    def _highest(self) -> int:
        return 0 if self.last is None else self.last.incarnation_offset

    def comparison(self) -> Comparison:
        """Says whether a connection still leads to where it led when it was checked.

        Behind PgBouncer it may be another server from one transaction to the next. To be asked for
        before the position is: another thread may see the store get further meanwhile.
        """
        last = self.last

        def is_in_order(position: Position) -> bool:
            if last is None or last[:2] != position[:2] or position.epoch < last.epoch:
                return False
            # A later epoch is another node's word that all is well, and lower positions with it.
            if position.epoch == last.epoch and position.lsn < last.lsn:
                return False
            # That node may not have known how far incarnations had been raised.
            if position.incarnation_offset < last.incarnation_offset:
                return False
            self.saw(position)
            return True

        return is_in_order


def _reason(found: FoundRow, last: Position | None) -> str | None:
    """Why the store may have lost something; None if it has not. Raises ReplacedServerError."""
    if found["system_id"] != found["known_system_id"]:
        return "the database is on a different PostgreSQL server"
    if found["timeline"] != found["known_timeline"]:
        return "a standby has taken over, or PostgreSQL was restored to a point in time"
    if found["relation"] != found["known_relation"]:
        return "the database was restored from a dump"
    # In a later epoch another node has seen to it already.
    if last is None or found["epoch"] > last.epoch:
        return None
    if found["system_id"] != last.system_id:
        return "this node has used a different PostgreSQL server before"
    if found["timeline"] < last.timeline:
        raise ReplacedServerError(found["timeline"], last.timeline)
    if found["timeline"] > last.timeline:
        return "a different standby has taken over"
    if found["epoch"] < last.epoch or found["lsn"] < last.lsn:
        return "PostgreSQL was restored from a backup"
    return None


def _too_low(found: FoundRow, known: Position | None) -> str | None:
    """Also in a later epoch: the node that began it may have known less."""
    if known is None or found["incarnation_offset"] >= known.incarnation_offset:
        return None
    return "the database has lower incarnations than this node has already used"


def _position(found: FoundRow) -> Position:
    return Position(
        found["system_id"],
        found["timeline"],
        found["epoch"],
        found["lsn"],
        found["incarnation_offset"],
    )


def _found(database: PostgresDatabase) -> FoundRow:
    [found] = database.ask(_FOUND)
    return found


def _begin(
    database: PostgresDatabase, found: FoundRow, reason: str, known: Position | None
) -> None:
    """One node does: the others find that the epoch has moved."""
    database.ask(_LIMITS)
    database.write(_LOCK)
    [now] = database.ask("SELECT epoch FROM store")
    if now["epoch"] != found["epoch"]:
        return
    before, at = found["incarnation_offset"], rows.to_instant(found["now"])
    # After several raises the highest may be ahead of the clock, and a backup is from before them.
    highest = before if known is None else max(before, known.incarnation_offset)
    offset = next_offset(highest, now=at)
    database.write(
        _MOVE,
        {
            "system_id": found["system_id"],
            "timeline": found["timeline"],
            "relation": found["relation"],
            # Above any that this node has seen, or it would take the store for an older one again.
            "epoch": 1 + max(found["epoch"], 0 if known is None else known.epoch),
            "offset": offset,
        },
    )
    for table in _MARKED:
        database.write(
            f"UPDATE {table} SET changed = pg_current_xact_id()"
            " WHERE changed >= pg_current_xact_id()"
        )
    cause = f"{reason}: incarnations were raised by {offset - before}"
    database.write(_REMARK, {"at": found["now"], "cause": cause})
    for key, value in Restoration(at=at, reason=reason).notes().items():
        database.write(_NOTE, {"key": key, "value": value})
    _log.warning(
        "the store may have lost changes that VMs have seen, so all incarnations were raised",
        extra={"why": reason, "incarnation_offset": offset},
    )
