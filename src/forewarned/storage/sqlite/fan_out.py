"""Messages of a group of functions, queued for their subscriptions by the commit that sends them.

There is one writer, and it knows all subscriptions. So a message need not wait in the outbox to be
compared with them. It does if there are many, or if others wait there: those of one scope are
queued in order.
"""

import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.storage.relational import outbox
from forewarned.storage.relational.statements import ADD_MESSAGE
from forewarned.storage.rows import micros
from forewarned.storage.sqlite.database import SqliteDatabase

MOST: Final = 1024
"""Deliveries that are queued with a group: its callers wait for them. More go by the outbox."""

# As `outbox.QUEUE_DELIVERY`. To bind values by name takes a quarter longer.
_QUEUE_FIRST: Final = """
    INSERT INTO deliveries (number, subscription, scope_id, queued_at, due_at)
    VALUES (?1, ?2, ?3, ?4,
            CASE WHEN EXISTS (SELECT 1 FROM deliveries
                              WHERE subscription = ?2 AND scope_id = ?3 AND state = 'pending')
                 THEN NULL ELSE ?4 END)
"""
_QUEUE_OTHER: Final = """
    INSERT INTO deliveries (number, subscription, scope_id, queued_at) VALUES (?, ?, ?, ?)
"""
"""Behind another one of the same scope."""


class Addressed(NamedTuple):
    message: Message
    takers: Sequence[Subscription]
    """The subscriptions that it is for."""


def write(
    connection: sqlite3.Connection,
    messages: Sequence[Addressed],
    subscriptions: Collection[str],
    *,
    now: datetime,
) -> None:
    """Those of a scope are in order. `subscriptions` are the names of those that there are."""
    database = SqliteDatabase(connection)
    waiting = connection.execute("SELECT 1 FROM outbox LIMIT 1").fetchone()
    if waiting or sum(len(takers) for _, takers in messages) > MOST:
        rows = [(message.scope_id, outbox.content_of(message)) for message, _ in messages]
        database.write_rows(ADD_MESSAGE, rows)
        return
    places = outbox.places_of(database, outbox.unplaced(message for message, _ in messages))
    queued_at = micros(now)
    queued, firsts, others = [], [], []
    scopes = set[tuple[str, str]]()
    number = last = _last_number(connection)
    for message, takers in messages:
        # Without subscriptions that a function of this group has removed.
        names = [each.name for each in takers if each.name in subscriptions]
        if not names:
            continue
        number += 1
        scope_id = message.scope_id
        content = outbox.content_of(message, outbox.place_among(places, message.vms))
        queued.append((number, scope_id, content))
        for name in names:
            if (name, scope_id) in scopes:
                others.append((number, name, scope_id, queued_at))
            else:
                scopes.add((name, scope_id))
                firsts.append((number, name, scope_id, queued_at))
    connection.executemany(outbox.QUEUE_MESSAGE, queued)
    connection.executemany(_QUEUE_FIRST, firsts)
    connection.executemany(_QUEUE_OTHER, others)
    if number > last:
        _note_number(connection, number)


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
