"""SQLite's writer: changes of every kind, one after another and several at once.

A change is one row of history, written in its transaction (I29). So what is recovered is read
there, and the events are held against it.
"""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Final

from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.events.approval import Approvals
from forewarned.service.events.schedule import EventOrder, Scheduler
from forewarned.service.lifecycle.actuation import Actuation
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Snapshot, Transaction
from forewarned.storage import SqliteStore
from tests.builders import NOON, OPERATOR, a_binding, a_resource, a_scope, event_id
from tests.storage.store_calls import keep
from tools.crash_points.subject import ACKED, STOPPED, Life, Tell, Verdict, compare
from tools.crash_points.subjects.answers import ask

DATABASE: Final = "forewarned.db"
RULES: Final = Rules()
ACTIONS: Final = frozenset({"scheduled", "approved", "completed", "canceled"})
"""What is asked for, as history calls it."""
_STATUSES: Final = {
    frozenset({"scheduled"}): EventStatus.SCHEDULED,
    frozenset({"scheduled", "approved"}): EventStatus.STARTED,
    frozenset({"scheduled", "approved", "completed"}): EventStatus.COMPLETED,
    frozenset({"scheduled", "canceled"}): EventStatus.CANCELED,
}
_ANOTHER: Final = event_id(99)


def opened(folder: Path, clock: VirtualClock | None = None) -> SqliteStore:
    clock = clock or VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=RULES)
    return SqliteStore(folder / DATABASE, clock, next_wake=next_wake, wall_clock=clock.now)


async def fill(store: SqliteStore) -> None:
    """Three VMs, each a scope of its own."""
    for number in (1, 2, 3):
        vm, scope_id = f"vm{number}", f"scope{number}"
        await keep(store, a_scope(id=scope_id, resources=[a_resource(vm)]))
        binding = a_binding(vm, scope_id=scope_id, address=f"10.0.0.{number}")
        await store.transact(lambda tx, binding=binding: tx.bind(binding))  # type: ignore[misc]  # the default is the binding of this turn


class Requests:
    """What callers ask of the store, and what they are answered."""

    def __init__(self, store: SqliteStore, tell: Tell) -> None:
        self.store = store
        self._tell = tell
        self._engine = Engine(store)

    async def schedule(self, id: EventId, vm: int) -> None:
        scheduler = Scheduler(self._engine, RULES, lambda: id)
        order = EventOrder(
            type=EventType.REBOOT,
            resources=(ResourceName(f"vm{vm}"),),
            source=EventSource.PLATFORM,
        )
        await ask(f"scheduled {id}", lambda: scheduler.schedule(order, by=OPERATOR), self._tell)

    async def approve(self, id: EventId) -> None:
        approvals = Approvals(self._engine, RULES)
        await ask(
            f"approved {id}", lambda: approvals.approve_from_outside(id, by=OPERATOR), self._tell
        )

    async def complete(self, id: EventId) -> None:
        actuation = Actuation(self._engine)
        await ask(
            f"completed {id}", lambda: actuation.complete_by_hand(id, by=OPERATOR), self._tell
        )

    async def cancel(self, id: EventId) -> None:
        scheduler = Scheduler(self._engine, RULES, lambda: id)
        await ask(
            f"canceled {id}",
            lambda: scheduler.cancel(id, reason="enough", by=OPERATOR),
            self._tell,
        )


async def ask_all(requests: Requests) -> None:
    first, second, third, fourth = map(event_id, (1, 2, 3, 4))
    await requests.schedule(first, 1)
    await requests.approve(first)
    await requests.schedule(second, 2)
    async with asyncio.TaskGroup() as tasks, held_up(requests.store):
        # They share a commit.
        tasks.create_task(requests.schedule(third, 3))
        tasks.create_task(requests.schedule(fourth, 1))
        tasks.create_task(requests.approve(second))
        await asyncio.sleep(0)
    await requests.complete(first)
    await requests.cancel(third)


@asynccontextmanager
async def held_up(store: SqliteStore) -> AsyncIterator[None]:
    """What is asked meanwhile waits, and is then taken together."""
    begun, go_on = threading.Event(), threading.Event()

    def hold_up(_: Transaction) -> None:
        begun.set()
        go_on.wait()

    holding = asyncio.create_task(store.transact(hold_up))
    while not begun.is_set() and not holding.done():  # noqa: ASYNC110  # set by another thread
        await asyncio.sleep(0)
    try:
        yield
    finally:
        go_on.set()
        with suppress(StoreUnavailableError):
            await holding


class StoreSubject:
    name = "store"
    title = "SQLite's writer"

    def __init__(self, make_requests: Callable[[SqliteStore, Tell], Requests] = Requests) -> None:
        self._make_requests = make_requests

    def prepare(self, folder: Path) -> None:
        asyncio.run(_fill(folder))

    def live(self, folder: Path, tell: Tell) -> None:
        asyncio.run(self._live(folder, tell))

    async def _live(self, folder: Path, tell: Tell) -> None:
        async with open_or_stop(folder, tell) as store:
            if store is not None:
                await ask_all(self._make_requests(store, tell))

    def attend(self, life: Life) -> list[str]:
        return life.told()

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:
        return asyncio.run(judged(folder, told))


class NewStoreSubject(StoreSubject):
    """No database: it is made, and every migration runs."""

    name = "new-store"
    title = "SQLite, a new database"

    @override
    def prepare(self, folder: Path) -> None:
        """Nothing is there."""

    @override
    async def _live(self, folder: Path, tell: Tell) -> None:
        async with open_or_stop(folder, tell) as store:
            if store is None:
                return
            try:
                await fill(store)
            except StoreUnavailableError as error:
                tell(f"{STOPPED} {error}")
                return
            await self._make_requests(store, tell).schedule(event_id(1), 1)


@asynccontextmanager
async def open_or_stop(folder: Path, tell: Tell) -> AsyncIterator[SqliteStore | None]:
    store = opened(folder)
    try:
        await store.__aenter__()
    except StoreUnavailableError as error:
        tell(f"{STOPPED} {error}")
        yield None
        return
    try:
        yield store
    finally:
        await store.__aexit__()


async def _fill(folder: Path) -> None:
    async with opened(folder) as store:
        await fill(store)


async def judged(folder: Path, told: Sequence[str]) -> Verdict:
    found: list[str] = []
    async with opened(folder) as store:
        recovered, wrong = await store.read(_recovered)
        found += wrong
        if await store.read(lambda snapshot: snapshot.binding(ResourceName("vm1"))):
            # It must go on, too.
            after: list[str] = []
            await Requests(store, after.append).schedule(_ANOTHER, 1)
            if f"{ACKED} scheduled {_ANOTHER}" not in after:
                found.append(f"nothing can be changed any more: {after}")
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        [[state]] = connection.execute("PRAGMA integrity_check")
    if state != "ok":
        found.append(f"the database is damaged: {state}")
    verdict = compare(told, recovered)
    return Verdict(lost=verdict.lost, doubled=verdict.doubled, wrong=[*verdict.wrong, *found])


def _recovered(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """What history says was done, and which events are otherwise than it says."""
    rows = [row for row in snapshot.history(HistoryFilter(limit=10_000)) if row.event_id]
    recovered = [f"{row.action} {row.event_id}" for row in rows if row.action in ACTIONS]
    wrong: list[str] = []
    for record in snapshot.events(EventFilter()):
        done = frozenset(row.action for row in rows if row.event_id == record.event.id) & ACTIONS
        if _STATUSES.get(done) is not record.event.status:
            wrong.append(f"{record.event.id} is {record.event.status} after {sorted(done)}")
    return recovered, wrong
