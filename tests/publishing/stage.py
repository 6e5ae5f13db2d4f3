"""A publisher over a store in memory and a clock that stands still, with targets that obey."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Final

from forewarned.clock import VirtualClock
from forewarned.core.change import Change
from forewarned.core.ids import ScopeId
from forewarned.core.model import Event
from forewarned.core.transitions import Approved
from forewarned.publishing.messenger import TargetMessenger
from forewarned.publishing.ports import Target
from forewarned.publishing.publisher import Publisher
from forewarned.service.engine import Engine
from forewarned.service.ports import Store, Transaction
from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryFilter,
    DeliveryState,
    Health,
    Message,
    Subscription,
)
from forewarned.service.subscriptions.outcomes import Delivered, Outcome
from forewarned.service.subscriptions.subscriptions import Subscriptions
from tests.bases import a_store
from tests.builders import DAY, NOON, OPERATOR, a_scope, an_event
from tests.storage.store_calls import settle_in

NODE: Final = "node-1"
PATIENCE: Final = 20.0


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110  # there is no event for most of what is waited for
            await asyncio.sleep(0.001)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    message: Message
    subscription: str
    answer: "asyncio.Future[Outcome]"

    @property
    def cause(self) -> int:
        """Which of the messages it is."""
        return (self.message.at - NOON).seconds


@dataclass(slots=True)
class Targets:
    """All targets: they answer as `script` says, or wait for the test to answer."""

    script: Callable[[Message, Subscription], Outcome | None] = lambda *_: Delivered()
    """None to wait."""
    attempts: list[Attempt] = field(default_factory=list)
    made: int = 0

    def __call__(self, subscription: Subscription, /) -> Target:
        self.made += 1
        return self

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome:
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.attempts.append(
            Attempt(message=message, subscription=subscription.name, answer=answer)
        )
        outcome = self.script(message, subscription)
        if outcome is not None:
            answer.set_result(outcome)
        return await answer

    @property
    def open(self) -> list[Attempt]:
        return [each for each in self.attempts if not each.answer.done()]

    def seen(self, scope_id: str = "scope1") -> list[int]:
        """The messages of one scope, in the order of attempts."""
        return [each.cause for each in self.attempts if each.message.scope_id == scope_id]

    async def wait_for(self, number: int) -> list[Attempt]:
        await until(lambda: len(self.attempts) >= number)
        return self.attempts


@dataclass(slots=True)
class Stage:
    store: Store
    clock: VirtualClock
    """Real time, as the store and the publisher have it."""
    engine: Engine
    targets: Targets
    subscriptions: Subscriptions
    times: "count[int]" = field(default_factory=count)

    async def subscribe(self, *subscriptions: Subscription) -> None:
        def decision(tx: Transaction) -> None:
            for each in subscriptions:
                tx.put_subscription(each)

        await self.engine.decide(decision)

    async def happen(self, scope_id: str = "scope1", *, event: Event | None = None) -> int:
        """Something that is published. Returns which message it is."""
        number = next(self.times)
        event = event or an_event(resources=[f"vm-of-{scope_id}"])

        def decision(tx: Transaction) -> None:
            scope = a_scope(event, id=scope_id)
            if not tx.exists(ScopeId(scope_id)):
                # The id of an event is used once.
                settle_in(tx, replace(scope, events={}))
            loaded = tx.load(ScopeId(scope_id))
            at = NOON + timedelta(seconds=number)
            fact = Approved(scope_id=loaded.id, at=at, event=event)
            tx.save(Change(scope=loaded, transitions=(fact,)), by=OPERATOR)

        await self.engine.decide(decision)
        return number

    async def pass_time(self, by: timedelta) -> None:
        await self.clock.step(by)

    async def deliveries(self, state: DeliveryState | None = None) -> list[Delivery]:
        return await self.engine.ask(lambda s: s.deliveries(DeliveryFilter(state=state)))

    async def health(self, name: str = "ops") -> Health:
        found = await self.engine.ask(lambda s: s.subscription_health(now=self.clock.now()))
        return found[name]

    async def settled(self, name: str = "ops", *, delivered: int = 0, failed: int = 0) -> None:
        """Until so many attempts are on record."""
        async with asyncio.timeout(PATIENCE):
            while True:
                health = await self.health(name)
                if health.delivered >= delivered and health.failed >= failed:
                    return
                await asyncio.sleep(0.001)

    def publisher(
        self,
        node: str = NODE,
        *,
        patience: timedelta = timedelta(0),
        keep_undelivered: timedelta = 30 * DAY,
    ) -> Publisher:
        publisher = Publisher(
            self.engine,
            TargetMessenger(self.targets),
            self.clock,
            node=node,
            jitter=lambda: 0.5,
            keep_undelivered=keep_undelivered,
            patience=patience,
            # The clock stands still.
            gather=timedelta(0),
        )
        self.engine.tell(publisher.hear)
        return publisher


@asynccontextmanager
async def a_stage(wrap: Callable[[Store], Store] = lambda store: store) -> AsyncIterator[Stage]:
    """The server's own clock is another one, and stands still for good."""
    clock, server_clock = VirtualClock(NOON, speed=0), VirtualClock(NOON, speed=0)
    async with clock, a_store(server_clock, wall_clock=clock.now) as opened:
        store = wrap(opened)
        engine, targets = Engine(store), Targets()
        use_cases = Subscriptions(
            engine,
            TargetMessenger(targets),
            real_now=clock.now,
            new_id=lambda: "id",
            new_secret=lambda: "whsec_new",
        )
        yield Stage(store, clock, engine, targets, use_cases)
