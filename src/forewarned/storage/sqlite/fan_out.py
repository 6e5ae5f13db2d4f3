"""Messages of a group of functions, written by the commit that sends them.

There is one writer, and it knows all subscriptions. So messages need not wait in the outbox to be
compared with them: a row beside them says which subscriptions they are for, and one that none is
for is not written.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby
from typing import Final

from forewarned.core.ids import ResourceName
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.storage.diff import fold
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.relational.publishing.outbox import NOWHERE, Place
from forewarned.storage.rows import Row, micros, to_json
from forewarned.storage.sqlite.database import SqliteDatabase

_MOST_PLACES: Final = 64_000
"""Places of VMs that are kept, some 400 bytes each."""
_MESSAGES: Final = "messages", ("number", "scope_id", "content")
_ADDRESSED: Final = "addressed", ("first_number", "last_number", "takers", "written_at")
_SIZES: Final = (64, 32, 16, 8, 4, 2, 1)
"""How many rows a statement inserts: each run of one costs more than a row does, also because it
lets another thread have the interpreter."""


class PlaceCache:
    """Where VMs are, for as long as no VM is bound, moved or removed.

    An event sends four messages or more, and its VMs stay where they are meanwhile.
    """

    def __init__(self, *, limit: int = _MOST_PLACES) -> None:
        self._limit = limit
        self._places: dict[str, Place] = {}

    def of(self, database: SqliteDatabase, messages: Sequence[Message]) -> Sequence[Place]:
        """Of the VMs of each of them; `NOWHERE` where that is not known."""
        found = [self._place_of_first(message) for message in messages]
        if NOWHERE not in found:
            return found
        known = self.find(database, outbox.first_unplaced(messages))
        found = [outbox.place_among(known, message.vms) for message in messages]
        left = [
            message
            for message, place in zip(messages, found, strict=True)
            if place is NOWHERE and len(message.vms) > 1
        ]
        if others := outbox.unplaced(left):
            # A copy: the second look-up may make room by forgetting the first.
            known = {**known, **self.find(database, others)}
            found = [outbox.place_among(known, message.vms) for message in messages]
        return found

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

    def _place_of_first(self, message: Message) -> Place:
        """Of its first VM: mostly the only one, and kept since the event's message before."""
        return self._places.get(fold(message.vms[0]), NOWHERE) if message.vms else NOWHERE


def write(
    database: SqliteDatabase,
    messages: Sequence[Message],
    subscriptions: Sequence[Subscription],
    *,
    places: PlaceCache,
    left: Mapping[str, Place],
    now: datetime,
) -> bool:
    """Those of a scope are in order. Returns whether there is one that a subscription is for.

    `left` is where VMs were that the group has removed.
    """
    wanted, takers = _addressed(messages, subscriptions)
    if not wanted:
        return False
    if left:
        wanted = [outbox.placed(message, left) for message in wanted]
    contents = outbox.contents_of(wanted, places.of(database, wanted))
    last = _take_numbers(database, len(wanted))
    first = last - len(wanted) + 1
    scopes = [message.scope_id for message in wanted]
    rows: list[Row] = [*zip(range(first, last + 1), scopes, contents, strict=True)]
    runs: list[Row] = []
    for same, run in groupby(takers):
        upto = first + len([*run]) - 1
        runs.append((first, upto, to_json([each.name for each in same]), micros(now)))
        first = upto + 1
    _insert(database, *_MESSAGES, rows)
    _insert(database, *_ADDRESSED, runs)
    return True


def _addressed(
    messages: Sequence[Message], subscriptions: Sequence[Subscription]
) -> tuple[Sequence[Message], Sequence[Sequence[Subscription]]]:
    """Those that a subscription is for, and for each of them the subscriptions that it is for."""
    if all(each.wants_all for each in subscriptions):
        return (messages, [subscriptions] * len(messages)) if subscriptions else ((), ())
    takers = [[each for each in subscriptions if each.wants(message)] for message in messages]
    wanted = [message for message, its_takers in zip(messages, takers, strict=True) if its_takers]
    return wanted, [its_takers for its_takers in takers if its_takers]


def _insert(
    database: SqliteDatabase, table: str, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    values = f"({', '.join('?' * len(columns))})"
    into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
    for part in _parts(rows):
        database.write(into + ", ".join([values] * len(part)), [*chain.from_iterable(part)])


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Of few different sizes, so that few statements are prepared."""
    at = 0
    for size in _SIZES:
        while len(rows) - at >= size:
            yield rows[at : at + size]
            at += size


def _take_numbers(database: SqliteDatabase, count: int) -> int:
    """The last of so many numbers that no message ever had, wherever it was written."""
    found = database.ask(
        "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'outbox' RETURNING seq", (count,)
    )
    if found:
        return int(found[0]["seq"])
    database.write("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?)", (count,))
    return count
