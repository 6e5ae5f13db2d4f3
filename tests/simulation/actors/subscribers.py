"""Those who are told of transitions, by the real publisher: they fail, and count what they get."""

from datetime import timedelta
from typing import Final

from forewarned.core.ids import ScopeId
from forewarned.publishing.publisher import Publisher
from forewarned.service.ports import Transaction
from forewarned.service.records import Commit
from forewarned.service.subscriptions.model import STATUS_OF, DeliveryFilter, Message, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome
from forewarned.service.subscriptions.targets import Webhook
from tests.simulation.network import NoAnswerError
from tests.simulation.node import SimulatedNode
from tests.simulation.world import World

_NAME: Final = "audit"
_KEPT: Final = timedelta(days=30)
_LOOK: Final = timedelta(hours=12)
"""Looks without news would be most of what a quiet month consists of."""


class Subscriber:
    """Takes messages, if it does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.received: dict[ScopeId, list[int]] = {}
        """Numbers of messages, in the order in which they first came."""
        self.told = 0
        """Transitions that it has to be told of, since it has subscribed."""
        self._is_subscribed = False
        world.listen(self._hear)

    async def subscribe(self) -> None:
        world = self._world
        node = world.network.any_node()
        subscription = Subscription(
            name=_NAME, target=Webhook(url="https://audit.example/"), created_at=world.true.now()
        )

        def put(tx: Transaction) -> None:
            tx.put_subscription(subscription)

        try:
            await world.network.ask(node, lambda: node.use_cases.engine.decide(put))
        except NoAnswerError:
            return
        self._is_subscribed = True

    def open(self, node: SimulatedNode) -> None:
        """A publisher of its own for each node that starts."""
        engine = node.use_cases.engine
        publisher = Publisher(
            engine,
            self,
            node.clock,
            node=node.name,
            jitter=self._world.chance.random,
            keep_undelivered=_KEPT,
            look=_LOOK,
        )
        engine.tell(publisher.hear)
        engine.tell_history(publisher)
        node.process.spawn(publisher.__aenter__())

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome:
        world = self._world
        await world.weather.trip()
        if world.weather.rarely(0.2):
            return Later(reason="busy")
        numbers = self.received.setdefault(message.scope_id, [])
        if message.number not in numbers:
            is_next = not numbers or numbers[-1] < message.number
            # What a failover has lost is numbered anew.
            assert is_next or world.lost_at, (
                f"{message.scope_id}: {message.number} after {numbers[-1]}"
            )
            numbers.append(message.number)
        # It has the message, and the answer may be lost all the same.
        return Later(reason="no answer") if world.weather.rarely(0.05) else Delivered()

    def check(self) -> None:
        """At least once: all that was told of is here, or still on its way."""
        if self._world.lost_at is not None or not self._is_subscribed:
            return
        snapshot = self._world.server.snapshot()
        waiting = len(snapshot.deliveries(DeliveryFilter(limit=100_000)))
        got = sum(map(len, self.received.values()))
        assert got + waiting >= self.told, f"{self.told} told, {got} received, {waiting} waiting"

    def _hear(self, commit: Commit) -> None:
        if self._is_subscribed:
            self.told += sum(type(fact) in STATUS_OF for fact in commit.transitions)
