"""What falls due is seen to, whatever stands in the way."""

from collections.abc import AsyncIterator, Callable, Collection
from datetime import timedelta
from functools import partial
from typing import TypeVar

import pytest
from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle, membership
from forewarned.core.ids import ScopeId
from forewarned.core.model import EventSource, EventStatus, EventType, Scope
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.lifecycle.waker import BATCH, Waker
from forewarned.service.listings import EventFilter
from forewarned.service.ports import Listener, Transaction
from forewarned.service.records import Commit
from forewarned.storage import SqliteStore
from tests.builders import MINUTE, NOON, OPERATOR, SECOND, a_resource, a_scope, event_id

T = TypeVar("T")
RULES = Rules()


class Failing(SqliteStore):
    """A store that fails as often as it is told to."""

    failures: list[Exception]

    @override
    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        if self.failures:
            raise self.failures.pop()
        return await super().transact(function, touching=touching, tell=tell)


class Watched:
    """A waker over some scopes, and how late it was."""

    def __init__(self) -> None:
        self.clock = VirtualClock(NOON, speed=0)
        self.store = Failing(None, self.clock, next_wake=partial(lifecycle.next_wake, rules=RULES))
        self.store.failures = []
        self.lateness: list[timedelta] = []
        self.engine = Engine(self.store, self)
        self.waker = Waker(
            self.engine, Activation(self.engine, self.clock, RULES), RULES, self.clock, self
        )
        self.engine.tell(self.waker.hear)

    def hear(self, commit: Commit) -> None:
        pass

    def committed(self, seconds: float) -> None:
        assert seconds >= 0

    def woke(self, late: timedelta) -> None:
        self.lateness.append(late)

    async def schedule(self, number: int) -> None:
        """A Reboot of one VM in each of so many scopes, all at once."""

        def work(tx: Transaction) -> None:
            for each in range(number):
                scope = _with_vm(tx, each)
                new = lifecycle.NewEvent(
                    id=event_id(each + 1),
                    type=EventType.REBOOT,
                    source=EventSource.PLATFORM,
                    resources=tuple(scope.resources),
                )
                tx.save(lifecycle.schedule(scope, new, rules=RULES, now=tx.now), by=OPERATOR)

        await self.engine.decide(work)

    async def started(self) -> int:
        wanted = EventFilter(statuses=frozenset({EventStatus.STARTED}), limit=10_000)
        return len(await self.engine.ask(lambda snapshot: snapshot.events(wanted)))


@pytest.fixture
async def watched(anyio_backend: object) -> AsyncIterator[Watched]:
    made = Watched()
    async with made.store:
        yield made


def _with_vm(tx: Transaction, number: int) -> Scope:
    empty = a_scope(id=f"scope{number}", resources=[], last_read_at=NOON)
    planned = a_scope(id=empty.id, resources=[a_resource(f"vm{number}")])
    tx.create(empty)
    tx.save(membership.enroll(tx.load(empty.id), planned, now=tx.now), by=OPERATOR)
    return tx.load(empty.id)


async def test_what_falls_due_in_many_scopes_at_one_instant_all_starts(watched: Watched) -> None:
    """I20: several batches, one instant."""
    await watched.schedule(2 * BATCH + 1)
    told: list[int] = []
    watched.engine.tell(lambda commit: told.append(len(commit.transitions)))

    await watched.clock.step(15 * MINUTE)

    assert await watched.started() == 2 * BATCH + 1
    assert told == [BATCH, BATCH, 1], "listeners hear of a batch at once"
    assert watched.lateness == [timedelta(0)]


@pytest.mark.parametrize("failure", [StoreUnavailableError("the disk is full"), KeyError("bug")])
async def test_what_could_not_be_seen_to_is_tried_again(
    watched: Watched, failure: Exception
) -> None:
    """F4: overdue events start as soon as the store is back."""
    await watched.schedule(1)
    watched.store.failures = [failure, failure]

    await watched.clock.step(15 * MINUTE)
    during = await watched.started()
    await watched.clock.step(2 * SECOND)

    assert during == 0
    assert await watched.started() == 1


async def test_what_failed_is_tried_once_a_second_however_often_it_is_told_to_be_due(
    watched: Watched,
) -> None:
    """Nodes hear twenty times a second what is due in the store that they share."""
    await watched.schedule(1)
    watched.store.failures = [StoreUnavailableError("its clock is ahead") for _ in range(9)]
    await watched.clock.step(15 * MINUTE)

    for _ in range(5):
        watched.waker.set(NOON + 15 * MINUTE)
        await watched.clock.step(timedelta(0))
    in_that_second = 9 - len(watched.store.failures)
    await watched.clock.step(SECOND)

    assert in_that_second == 1
    assert 9 - len(watched.store.failures) == 2


async def test_waking_again_at_the_same_instant_starts_nothing_twice(watched: Watched) -> None:
    """I5."""
    await watched.schedule(3)
    await watched.clock.step(15 * MINUTE)

    watched.waker.set(watched.clock.now())
    await watched.clock.step(SECOND)

    assert await watched.started() == 3
