"""Those who are told of transitions, by the real publisher: they fail, and count what they get."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.transitions import EventTransition, Stalled
from forewarned.publishing.publisher import Publisher
from forewarned.service.ports import Transaction
from forewarned.service.subscriptions.model import (
    STATUS_OF,
    Message,
    PublishedStatus,
    Subscription,
)
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome
from forewarned.service.subscriptions.targets import Webhook
from tests.simulation import laws
from tests.simulation.network import NoAnswerError
from tests.simulation.node import SimulatedNode
from tests.simulation.world import World

_NAME: Final = "audit"
_KEPT: Final = timedelta(days=30)
_LOOK: Final = timedelta(hours=12)
"""Looks without news would be most of what a quiet month consists of."""
_CALM: Final = timedelta(days=1)


class Told(NamedTuple):
    """One transition that subscribers are told of."""

    event_id: EventId
    status: PublishedStatus
    at: datetime
    vms: tuple[ResourceName, ...]
    """Of a Stalled event, which may be told of once for each of them."""


class Subscriber:
    """Takes messages, if it does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: int | None = None
        """How many facts there were when it had subscribed; None before that."""
        self._oracle = world.ledger.oracle
        self._subscribed_at = world.true.now()
        self._read = 0
        """Facts that were looked at."""
        self._places: dict[ScopeId, dict[Told, int]] = {}
        """All that it has to be told of, in the order in which that was committed."""
        self._received: dict[ScopeId, dict[Told, int]] = {}
        """What it was told of, as far as it is still true, and the places of that."""

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
        self._subscribed_at = world.true.now()
        self._since = self._read = len(world.ledger.oracle.facts)
        self._oracle = world.ledger.oracle

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
        self._receive(message)
        # It has the message, and the answer may be lost all the same.
        return Later(reason="no answer") if world.weather.rarely(0.05) else Delivered()

    def _receive(self, message: Message) -> None:
        self._learn()
        told = _of_message(message)
        place = self._places.get(message.scope_id, {}).get(told)
        if place is None:
            # From before it has subscribed, or it was on its way when a failover lost its event.
            is_early = self._since is None or message.at <= self._subscribed_at
            laws.messages_tell_what_happened(
                told, excused=is_early or self._world.has_lost_lately()
            )
            return
        received = self._received.setdefault(message.scope_id, {})
        if told not in received:
            laws.messages_come_in_order(told, place, received.values())
            received[told] = place

    def check(self) -> None:
        """At least once: all that was told of is here, or still on its way."""
        if self._since is None:
            return
        self._learn()
        waiting = {_of_message(each) for each in self._world.server.messages_on_their_way()}
        for scope_id, places in self._places.items():
            received = self._received.get(scope_id, {})
            missing = places.keys() - received.keys() - waiting
            laws.messages_come_at_least_once(missing)

    def check_calm(self) -> None:
        """After a day without failures nothing is on its way any more."""
        if self._since is None:
            return
        self._learn()
        long_ago = self._world.true.now() - _CALM
        for scope_id, places in self._places.items():
            missing = places.keys() - self._received.get(scope_id, {}).keys()
            laws.messages_come_at_least_once({told for told in missing if told.at < long_ago})

    def _learn(self) -> None:
        """What was committed since. A failover may have taken some of it back."""
        if self._since is None:
            return
        has_fallen_back = self._oracle is not self._world.ledger.oracle
        if has_fallen_back:
            self._oracle = self._world.ledger.oracle
            self._read = self._since
            self._places.clear()
        facts = self._oracle.facts
        for fact in facts[self._read :]:
            status = STATUS_OF.get(type(fact))
            if status is not None and isinstance(fact, EventTransition):
                vms = fact.vms if isinstance(fact, Stalled) else ()
                places = self._places.setdefault(fact.scope_id, {})
                places.setdefault(Told(fact.event.id, status, fact.at, vms), len(places))
        self._read = len(facts)
        if has_fallen_back:
            for scope_id, received in self._received.items():
                places = self._places.get(scope_id, {})
                for told in [each for each in received if each not in places]:
                    del received[told]


def _of_message(message: Message) -> Told:
    vms = message.vms if message.status is PublishedStatus.STALLED else ()
    return Told(message.event.id, message.status, message.at, vms)
