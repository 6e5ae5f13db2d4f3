"""A publisher that ends, is killed, loses its claims or its store: nothing is lost (I23)."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import pytest

from forewarned.core.ids import ScopeId
from forewarned.publishing.turn import CLAIM
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.ports import Listener, Store, Transaction
from forewarned.service.records import Commit
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome
from tests.builders import DAY, SECOND
from tests.publishing.stage import Stage, a_stage, until
from tests.service.subscriptions.messages import a_subscription

T = TypeVar("T")

OPS, CHAT = a_subscription("ops"), a_subscription("chat")
BUSY = Later(reason="503 Service Unavailable")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with a_stage() as stage:
        await stage.subscribe(OPS)
        yield stage


async def test_i23_what_was_under_way_when_a_node_was_killed_is_delivered_when_it_is_back(
    stage: Stage,
) -> None:
    """At once: nobody else has the node's name."""
    stage.targets.script = lambda *_: None
    killed = stage.publisher()
    await killed.__aenter__()
    await stage.happen()
    await stage.targets.wait_for(1)
    await kill(killed)

    stage.targets.script = lambda *_: Delivered()
    async with stage.publisher():
        await stage.settled(delivered=1)

    assert stage.targets.seen() == [0, 0]
    assert stage.targets.attempts[0].message.id == stage.targets.attempts[1].message.id


async def test_i23_another_node_takes_over_what_a_killed_one_had_claimed(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    killed = stage.publisher("node-1")
    await killed.__aenter__()
    await stage.happen()
    await stage.happen()
    await stage.targets.wait_for(1)
    await kill(killed)

    stage.targets.script = lambda *_: Delivered()
    async with stage.publisher("node-2"):
        await stage.happen("scope2")
        await stage.settled(delivered=1)
        before = stage.targets.seen()
        await stage.pass_time(CLAIM)
        await stage.settled(delivered=3)

    assert before == [0]
    assert stage.targets.seen() == [0, 0, 1]


async def test_a_slow_attempt_keeps_its_claim(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    async with stage.publisher("node-1"), stage.publisher("node-2"):
        await stage.happen()
        [attempt] = await stage.targets.wait_for(1)
        for _ in range(10):
            await stage.pass_time(CLAIM / 4)
            # A turn of each, before time goes on.
            await stage.subscribe(OPS)
            await stage.engine.finish()
        attempt.answer.set_result(Delivered())
        await stage.settled(delivered=1)

    assert stage.targets.seen() == [0]


async def test_what_comes_of_an_attempt_that_lost_its_claim_does_not_count(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    async with stage.publisher("node-1"):
        await stage.happen()
        await stage.happen()
        [attempt] = await stage.targets.wait_for(1)
        await stage.engine.decide(steal)
        attempt.answer.set_result(Delivered())
        await stage.happen("scope2")
        await stage.targets.wait_for(2)

    assert [each.message.scope_id for each in stage.targets.attempts] == ["scope1", "scope2"]
    assert (await stage.health()).delivered == 0


def steal(tx: Transaction) -> None:
    tx.release_deliveries(by="node-1")
    [taken] = tx.claim_deliveries({"ops": 1}, by="node-2", until=tx.real_now + DAY / 48)
    assert taken.message.scope_id == ScopeId("scope1")


async def test_a_server_that_ends_waits_for_what_is_under_way(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    publisher = stage.publisher(patience=10 * SECOND)
    await publisher.__aenter__()
    await stage.happen()
    [attempt] = await stage.targets.wait_for(1)
    attempt.answer.get_loop().call_later(0.05, attempt.answer.set_result, Delivered())

    await publisher.__aexit__()

    assert (await stage.health()).delivered == 1


async def test_a_server_that_ends_gives_back_what_it_can_t_finish(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    async with stage.publisher("node-1"):
        await stage.happen()
        await stage.targets.wait_for(1)

    stage.targets.script = lambda *_: Delivered()
    async with stage.publisher("node-2"):
        await stage.settled(delivered=1)

    assert stage.targets.seen() == [0, 0]


async def kill(publisher: object) -> None:
    """As far as it can be done in one process: it does not record anything any more."""
    for task in (publisher._task, *publisher._under_way.values()):  # type: ignore[attr-defined]
        task.cancel()
    publisher._set_timer(None)  # type: ignore[attr-defined]


# --- the store -----------------------------------------------------------------------------------


@dataclass
class UnreliableStore:
    """Fails while it is told to. Nothing else is changed by that."""

    store: Store
    is_down: bool = False
    forgets_to_answer: bool = False
    """The next change is committed, and nobody is told."""

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        if self.is_down:
            raise StoreUnavailableError("down")
        answer = await self.store.transact(function, touching=touching, tell=tell)
        if self.forgets_to_answer:
            self.forgets_to_answer = False
            raise StoreUnavailableError("the outcome is unknown")
        return answer

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)


@asynccontextmanager
async def an_unreliable_stage() -> AsyncIterator[tuple[Stage, UnreliableStore]]:
    wrapped: list[UnreliableStore] = []

    def wrap(store: Store) -> Store:
        wrapped.append(UnreliableStore(store))
        return wrapped[0]  # type: ignore[return-value]  # it has all, by way of __getattr__

    async with a_stage(wrap) as stage:
        yield stage, wrapped[0]


async def test_i23_a_store_that_fails_in_between_loses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with an_unreliable_stage() as (stage, store):
        await stage.subscribe(OPS)
        stage.targets.script = lambda *_: None
        async with stage.publisher():
            await stage.happen()
            await stage.happen()
            [attempt] = await stage.targets.wait_for(1)
            store.is_down = True
            attempt.answer.set_result(Delivered())
            await until(lambda: "the store is unavailable" in caplog.text)
            store.is_down = False
            stage.targets.script = lambda *_: Delivered()
            await stage.pass_time(SECOND)
            await stage.settled(delivered=2)

    assert stage.targets.seen() == [0, 1]


async def test_i23_what_was_claimed_by_a_turn_of_unknown_outcome_goes_when_the_claim_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not only when the publisher looks without having heard of anything, a minute later."""
    async with an_unreliable_stage() as (stage, store):

        def deliver_the_first(message: Message, _: Subscription) -> Outcome:
            # The next change is the turn that records this, and claims the second.
            store.forgets_to_answer = not message.at.second
            return Delivered()

        await stage.subscribe(OPS)
        await stage.happen()
        await stage.happen()
        stage.targets.script = deliver_the_first
        async with stage.publisher():
            await until(lambda: "the store is unavailable" in caplog.text)
            await stage.pass_time(SECOND)
            await stage.happen("scope2")
            await stage.settled(delivered=2)
            before = stage.targets.seen()
            await stage.pass_time(CLAIM)
            await stage.settled(delivered=3)

    assert before == [0]
    assert stage.targets.seen() == [0, 1]
