"""Messages of a group of functions, queued for their subscriptions by the commit that sends them.

There is one writer, and it knows all subscriptions. So a message need not wait in the outbox to be
compared with them. It does if there are many, or if others wait there: those of one scope are
queued in order.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from forewarned.service.subscriptions.model import Message, Subscription, SubscriptionState
from forewarned.storage.relational import outbox
from forewarned.storage.relational.statements import ADD_MESSAGE
from forewarned.storage.rows import micros
from forewarned.storage.sqlite.database import SqliteDatabase

MOST: Final = 1024
"""Deliveries that are queued with a group: its callers wait for them. More go by the outbox."""

# As `outbox.QUEUE_DELIVERY`. To bind values by name takes a quarter longer.
_QUEUE_DELIVERY: Final = """
    INSERT INTO deliveries (number, subscription, scope_id, queued_at, due_at)
    VALUES (?1, ?2, ?3, ?4,
            CASE WHEN EXISTS (SELECT 1 FROM deliveries
                              WHERE subscription = ?2 AND scope_id = ?3 AND state = 'pending')
                 THEN NULL ELSE ?4 END)
"""


def write(
    connection: sqlite3.Connection,
    messages: Sequence[Message],
    subscriptions: Sequence[Subscription],
    *,
    now: datetime,
) -> bool:
    """Those of a scope are in order. Returns whether they give the publisher something to do."""
    addressed = [
        (message, takers)
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
    places = outbox.places_of(database, outbox.unplaced(message for message, _ in addressed))
    queued_at = micros(now)
    queued, deliveries = [], []
    number = _last_number(connection)
    for message, takers in addressed:
        number += 1
        scope_id = message.scope_id
        content = outbox.content_of(message, outbox.place_among(places, message.vms))
        queued.append((number, scope_id, content))
        deliveries += [(number, each.name, scope_id, queued_at) for each in takers]
    connection.executemany(outbox.QUEUE_MESSAGE, queued)
    connection.executemany(_QUEUE_DELIVERY, deliveries)
    _note_number(connection, number)
    return any(each.state is SubscriptionState.ACTIVE for _, takers in addressed for each in takers)


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
