from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest
from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle, membership
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.activation import BATCH, Activation
from forewarned.service.lifecycle.waker import Waker
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Caller, Commit
from forewarned.storage import SqliteStore
from tests.builders import HOUR, MINUTE, NOON, OPERATOR, SECOND, a_scope

SCOPE = ScopeId("scope1")
RULES = Rules()
CALLER = Caller(name=ResourceName("vm1"), scope_id=SCOPE)


class CountingStore(SqliteStore):
    """Counts the marks it is asked for, and fails as often as it is told to."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(None, clock, next_wake=partial(lifecycle.next_wake, rules=RULES))
        self.marked: list[int] = []
        self.failures = 0

    @override
    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        self.marked.append(len(marks))
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError
        await super().mark_read(marks, older_by=older_by)


class Read:
    """An active scope, and what takes note of its readers."""

    def __init__(self) -> None:
        self.clock = VirtualClock(NOON, speed=0)
        self.store = CountingStore(self.clock)
        self.engine = Engine(self.store)
        self.reading = Activation(self.engine, self.clock, RULES)
        waker = Waker(self.engine, self.reading, RULES, self.clock)
        self.engine.tell(waker.hear)

    async def poll(self, *scope_ids: ScopeId) -> None:
        for scope_id in scope_ids or (SCOPE,):
            self.reading.seen(scope_id, CALLER.name)
        await self.reading.finish()

    async def is_active(self) -> bool:
        return await self.engine.ask(lambda snapshot: snapshot.load(SCOPE).active)

    async def last_read_on_record(self) -> datetime | None:
        return await self.engine.ask(lambda snapshot: snapshot.load(SCOPE).last_read_at)


def everything(snapshot: Snapshot) -> tuple[object, ...]:
    """But for the time of the last read."""
    saved = [
        replace(each, scope=replace(each.scope, last_read_at=None)) for each in snapshot.scopes()
    ]
    return saved, snapshot.history(HistoryFilter())


@pytest.fixture
async def read(anyio_backend: object) -> AsyncIterator[Read]:
    made = Read()

    def create(tx: Transaction) -> None:
        tx.create(a_scope(id=SCOPE, resources=[], active=False))
        planned = a_scope(id=SCOPE, active=False)
        tx.save(membership.enroll(tx.load(SCOPE), planned, now=tx.now), by=OPERATOR)

    async with made.store:
        await made.engine.decide(create)
        await made.reading.activate(CALLER, address="")
        yield made


async def test_a_scope_that_is_read_all_the_time_is_marked_twice_an_hour(read: Read) -> None:
    """I26."""
    for _ in range(12 * 60):
        await read.clock.step(MINUTE)
        await read.poll()

    assert len(read.store.marked) == 24
    assert await read.last_read_on_record() == NOON + 12 * HOUR


async def test_a_mark_is_no_news_to_anyone(read: Read) -> None:
    """I26, I29: no revision, no history, and no listener is told."""
    told: list[Commit] = []
    read.engine.tell(told.append)
    before = await read.engine.ask(everything)

    await read.clock.step(HOUR)
    await read.poll()

    assert await read.last_read_on_record() == NOON + HOUR
    assert await read.engine.ask(everything) == before
    assert told == []


async def test_scopes_that_are_read_together_are_marked_together(read: Read) -> None:
    await read.clock.step(HOUR)

    await read.poll(SCOPE, *(ScopeId(f"other-{number}") for number in range(BATCH)))

    assert read.store.marked == [BATCH, 1]


async def test_a_scope_that_is_read_all_the_time_stays_active_for_days(read: Read) -> None:
    """I28."""
    for _ in range(72):
        await read.clock.step(HOUR - MINUTE)
        await read.poll()

        assert await read.is_active()


async def test_the_mark_is_never_an_hour_old_though_another_process_made_it(read: Read) -> None:
    """I28: a read a moment after another node's mark is not noted, and the next one is."""
    await read.clock.step(HOUR)
    other = Activation(read.engine, read.clock, RULES)
    other.seen(SCOPE, CALLER.name)
    await other.finish()

    for _ in range(10):
        await read.clock.step(20 * MINUTE)
        await read.poll()

        mark = await read.last_read_on_record()
        assert mark is not None
        assert read.clock.now() - mark < HOUR


async def test_a_scope_is_active_until_24_hours_after_its_last_read_and_no_longer(
    read: Read,
) -> None:
    """I28: to the second, although the store's mark is older."""
    await read.clock.step(HOUR / 2 - MINUTE)
    await read.poll()

    await read.clock.step(RULES.silence - SECOND)
    before = await read.is_active()
    await read.clock.step(SECOND)

    assert read.store.marked == []
    assert before
    assert not await read.is_active()


async def test_what_another_node_has_noted_counts_as_a_read(read: Read) -> None:
    """I28: the Waker of a node that has no reader goes by the store's mark."""
    other = Activation(read.engine, read.clock, RULES)
    for _ in range(30):
        await read.clock.step(HOUR)
        other.seen(SCOPE, CALLER.name)
        await other.finish()

    assert await read.is_active()
    await read.clock.step(RULES.silence - SECOND)
    assert await read.is_active()
    await read.clock.step(SECOND)
    assert not await read.is_active()


async def test_a_scope_that_another_node_reads_is_woken_once_a_day_at_most(read: Read) -> None:
    """A wake that has come too early is set anew, rather than come again at once."""
    other = Activation(read.engine, read.clock, RULES)
    woken: list[Commit] = []
    read.engine.tell(woken.append)

    for _ in range(5 * 24):
        await read.clock.step(HOUR)
        other.seen(SCOPE, CALLER.name)
        await other.finish()

    assert len(woken) <= 6


async def test_a_read_that_could_not_be_noted_is_noted_a_minute_later(read: Read) -> None:
    """F4: and not at every poll until then."""
    read.store.failures = 1
    await read.clock.step(HOUR)
    for _ in range(60):
        await read.poll()
        await read.clock.step(SECOND)

    assert len(read.store.marked) == 1
    await read.poll()
    assert await read.last_read_on_record() == NOON + HOUR + MINUTE


async def test_a_vm_that_was_removed_meanwhile_switches_nothing_on(read: Read) -> None:
    stranger = Caller(name=ResourceName("gone"), scope_id=SCOPE)

    with pytest.raises(UnknownResourceError):
        await read.reading.activate(stranger, address="")


async def test_who_read_last_is_known_after_it_is_on_record_and_until_a_restart(read: Read) -> None:
    other = ResourceName("vm2")
    scope = await read.engine.ask(lambda snapshot: snapshot.load(SCOPE))
    first = read.reading.last_reader(scope)
    await read.clock.step(HOUR)

    read.reading.seen(SCOPE, other)
    await read.reading.finish()

    kept = await read.engine.ask(lambda snapshot: snapshot.load(SCOPE))
    assert first == CALLER.name
    assert read.reading.last_reader(kept) == other
    assert Activation(read.engine, read.clock, RULES).last_reader(kept) is None
