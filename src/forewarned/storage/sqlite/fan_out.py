"""Messages of a group of functions, queued for their subscriptions by the commit that sends them.

There is one writer, and it knows all subscriptions. So a message need not wait in the outbox to be
compared with them. It does if there are many, or if others wait there: those of one scope are
queued in order.
"""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

from forewarned.core.ids import ResourceName
from forewarned.service.subscriptions.model import Message, Subscription, SubscriptionState
from forewarned.storage.diff import fold
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.relational.publishing.outbox import Place
from forewarned.storage.relational.statements import ADD_MESSAGE
from forewarned.storage.rows import Row, micros, to_json
from forewarned.storage.sqlite.database import SqliteDatabase

MOST: Final = 1024
"""Deliveries that are queued with a group: its callers wait for them. More go by the outbox."""

_MOST_PLACES: Final = 64_000
"""Places of VMs that are kept, some 400 bytes each."""
_SIZES: Final = (16, 4, 1)
"""How many rows a statement inserts: each run of one costs more than a row does."""
_MESSAGE: Final = "messages", ("number", "scope_id", "content")
_DELIVERY: Final = "deliveries", ("number", "subscription", "scope_id", "queued_at", "due_at")
_PENDING: Final = """
    SELECT DISTINCT subscription, scope_id FROM json_each(?) AS wanted CROSS JOIN deliveries
    WHERE subscription = wanted.value ->> 0 AND scope_id = wanted.value ->> 1 AND state = 'pending'
"""


class PlaceCache:
    """Where VMs are, for as long as no VM is bound, moved or removed.

    An event sends four messages or more, and its VMs stay where they are meanwhile.
    """

    def __init__(self, *, limit: int = _MOST_PLACES) -> None:
        self._limit = limit
        self._places: dict[str, Place] = {}

    def find(self, database: SqliteDatabase, vms: Collection[ResourceName]) -> dict[str, Place]:
        """By the VM's name as names are compared. There may be others in it."""
        missing = [vm for vm in vms if fold(vm) not in self._places]
        if missing:
            if len(self._places) + len(missing) > self._limit:
                self._places.clear()
                missing = list(vms)
            self._places.update(outbox.places_of(database, missing))
        return self._places

    def forget(self) -> None:
        self._places.clear()


def write(
    connection: sqlite3.Connection,
    messages: Sequence[Message],
    subscriptions: Sequence[Subscription],
    *,
    places: PlaceCache,
    left: Mapping[str, Place],
    now: datetime,
) -> bool:
    """Those of a scope are in order. Returns whether they give the publisher something to do.

    `left` is where VMs were that the group has removed.
    """
    addressed = [
        (outbox.placed(message, left) if left else message, takers)
        for message in messages
        if (takers := [each for each in subscriptions if each.wants(message)])
    ]
    if not addressed:
        return False
    database = SqliteDatabase(connection)
    waiting = connection.execute("SELECT 1 FROM outbox LIMIT 1").fetchone()
    if waiting or sum(len(takers) for _, takers in addressed) > MOST:
        rows = [(message.scope_id, outbox.content_of(message)) for message, _ in addressed]
        database.write_rows(ADD_MESSAGE, rows)
        return True
    known = places.find(database, outbox.unplaced(message for message, _ in addressed))
    # Of a subscription and a scope, only the first is due.
    keys = {(each.name, message.scope_id) for message, takers in addressed for each in takers}
    preceded = set(map(tuple, connection.execute(_PENDING, (to_json(list(keys)),))))
    queued_at = micros(now)
    queued: list[Row] = []
    deliveries: list[Row] = []
    number = _last_number(connection)
    for message, takers in addressed:
        number += 1
        scope_id = message.scope_id
        content = outbox.content_of(message, outbox.place_among(known, message.vms))
        queued.append((number, scope_id, content))
        for each in takers:
            key = each.name, scope_id
            due_at = None if key in preceded else queued_at
            preceded.add(key)
            deliveries.append((number, each.name, scope_id, queued_at, due_at))
    _insert(connection, *_MESSAGE, queued)
    _insert(connection, *_DELIVERY, deliveries)
    _note_number(connection, number)
    return any(each.state is SubscriptionState.ACTIVE for _, takers in addressed for each in takers)


def _insert(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    values = f"({', '.join('?' * len(columns))})"
    into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
    for part in _parts(rows):
        connection.execute(into + ", ".join([values] * len(part)), [*chain.from_iterable(part)])


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Of few different sizes, so that few statements are prepared."""
    at = 0
    for size in _SIZES:
        while len(rows) - at >= size:
            yield rows[at : at + size]
            at += size


def _last_number(connection: sqlite3.Connection) -> int:
    """The highest that a message ever had, wherever it was written."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
    return 0 if found is None else int(found[0])


def _note_number(connection: sqlite3.Connection, number: int) -> None:
    noted = connection.execute(
        "UPDATE sqlite_sequence SET seq = ? WHERE name = 'outbox'", (number,)
    ).rowcount
    if not noted:
        connection.execute(
            "INSERT INTO sqlite_sequence (seq, name) VALUES (?, 'outbox')", (number,)
        )
