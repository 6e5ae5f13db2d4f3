from datetime import datetime
from functools import partial

import pytest
from typing_extensions import override

from forewarned.clock import Call, Timer, VirtualClock
from forewarned.core import lifecycle, membership
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.lifecycle.activation import FLUSH_EVERY, Activation
from forewarned.service.ports import Transaction
from forewarned.service.records import Caller
from forewarned.storage.memory import MemoryStore
from tests.builders import HOUR, NOON, OPERATOR, a_scope

SCOPE = ScopeId("scope1")
CALLER = Caller(name=ResourceName("vm1"), scope_id=SCOPE)


class CountingClock(VirtualClock):
    timers = 0

    @override
    def at(self, instant: datetime, call: Call) -> Timer:
        self.timers += 1
        return super().at(instant, call)


class Read:
    """An active scope, and what takes note of its readers."""

    def __init__(self) -> None:
        self.clock = CountingClock(NOON, speed=0)
        self.store = MemoryStore(self.clock, next_wake=partial(lifecycle.next_wake, rules=Rules()))
        self.engine = Engine(self.store)
        self.reading = Activation(self.engine, self.clock)

    async def last_read_on_record(self) -> datetime | None:
        return await self.engine.ask(lambda snapshot: snapshot.load(SCOPE).last_read_at)


@pytest.fixture
async def read(anyio_backend: object) -> Read:
    made = Read()

    def create(tx: Transaction) -> None:
        tx.create(a_scope(id=SCOPE, resources=[], active=False))
        planned = a_scope(id=SCOPE, active=False)
        tx.save(membership.enroll(tx.load(SCOPE), planned, now=tx.now), by=OPERATOR)

    await made.engine.decide(create)
    await made.reading.activate(CALLER, address="")
    made.reading.flush_regularly()
    return made


async def test_a_poll_is_on_record_a_few_minutes_later(read: Read) -> None:
    await read.clock.step(HOUR)
    read.reading.seen(SCOPE, CALLER.name)

    await read.clock.step(FLUSH_EVERY)

    assert await read.last_read_on_record() == NOON + HOUR


async def test_polls_go_on_reaching_the_store(read: Read) -> None:
    for _ in range(3):
        read.reading.seen(SCOPE, CALLER.name)
        await read.clock.step(FLUSH_EVERY)

    assert await read.last_read_on_record() == NOON + 2 * FLUSH_EVERY


async def test_while_nobody_reads_there_is_nothing_to_do(read: Read) -> None:
    """Moving the clock by years takes no longer than what happens in them."""
    read.reading.seen(SCOPE, CALLER.name)

    await read.clock.step(1000 * HOUR)

    assert read.clock.timers == 1


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

    await read.clock.step(FLUSH_EVERY)

    kept = await read.engine.ask(lambda snapshot: snapshot.load(SCOPE))
    assert first == CALLER.name
    assert read.reading.last_reader(kept) == other
    assert Activation(read.engine, read.clock).last_reader(kept) is None
