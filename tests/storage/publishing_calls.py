"""What tests of subscriptions and deliveries in stores do over and over."""

from collections.abc import Collection
from operator import methodcaller

from forewarned.core.model import (
    EventSource,
    EventType,
)
from forewarned.core.transitions import (
    Scheduled,
)
from forewarned.service.ports import Store, Transaction
from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryFilter,
    DeliveryState,
    Filter,
    Message,
    PublishedStatus,
    SubscriptionState,
)
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.targets import Apprise
from forewarned.storage.relational.publishing.outbox import content_of
from forewarned.storage.rows import micros
from tests.builders import (
    MINUTE,
    NOON,
    A,
    a_scope,
    an_event,
)
from tests.service.subscriptions.messages import a_subscription

OPS = a_subscription("ops")
CHAT = a_subscription(
    "chat",
    target=Apprise(url="json://token@127.0.0.1/"),
    shape=Shape(name=ShapeName.TEMPLATE, template="{{ event.id }}"),
    filter=Filter(
        types=frozenset({EventType.FREEZE}),
        statuses=frozenset({PublishedStatus.STALLED}),
        sources=frozenset({EventSource.USER}),
        scopes=("avset/*",),
        vms=("web-*", "Größe"),
    ),
    state=SubscriptionState.PAUSED,
)
NODE, OTHER = "node-1", "node-2"
EVENT = an_event(A)
SCHEDULED = Scheduled(scope_id=a_scope().id, at=NOON, event=EVENT)


async def put(store: Store, *subscriptions: object) -> None:
    for subscription in subscriptions:
        await store.transact(methodcaller("put_subscription", subscription))


async def take(store: Store, *, limit: int = 100) -> list[Message]:
    """What `ops` is to be told of. At most so many are taken out of the outbox."""

    def decision(tx: Transaction) -> list[Message]:
        for message in tx.place(tx.take_outbox(limit=limit).unaddressed):
            tx.queue(message, ["ops"])
        found = tx.deliveries(DeliveryFilter(subscription="ops"))
        for delivery in found:
            tx.end_delivery(delivery)
        return [delivery.message for delivery in found]

    taken, _ = await store.transact(decision)
    return taken


async def queue(store: Store, *messages: Message, names: Collection[str] = ("ops",)) -> None:
    def decision(tx: Transaction) -> None:
        for message in messages:
            tx.queue(message, names)

    await store.transact(decision)


async def claim(
    store: Store, *, by: str = NODE, most: int = 10, names: Collection[str] = ("ops",)
) -> list[Delivery]:
    def decision(tx: Transaction) -> list[Delivery]:
        until = tx.real_now + MINUTE
        return tx.claim_deliveries(dict.fromkeys(names, most), by=by, until=until)

    claimed, _ = await store.transact(decision)
    return claimed


async def queued(store: Store) -> list[Delivery]:
    """All deliveries, once the messages in the outbox that say who takes them are queued."""
    await store.transact(methodcaller("take_outbox", limit=1_000))
    return await listed(store)


def leave(tx: Transaction, message: Message, takers: str | None) -> None:
    """In the outbox or, if it is known who takes it, beside it."""
    database = tx._writable  # type: ignore[attr-defined]
    content = (message.scope_id, content_of(message))
    database.write("INSERT INTO outbox (scope_id, content) VALUES (?, ?)", content)
    if takers is None:
        return
    [[number]] = database.ask("SELECT max(number) FROM outbox")
    database.write("DELETE FROM outbox WHERE number = ?", (number,))
    database.write("INSERT INTO messages VALUES (?, ?, ?)", (number, *content))
    values = (number, number, takers, micros(tx.real_now))
    database.write("INSERT INTO addressed VALUES (?, ?, ?, ?)", values)


async def listed(store: Store, state: DeliveryState | None = None) -> list[Delivery]:
    return await store.read(lambda snapshot: snapshot.deliveries(DeliveryFilter(state=state)))


async def count(store: Store, table: str) -> int:
    [[number]] = await store.read(
        lambda snapshot: snapshot._all(f"SELECT count(*) FROM {table}")  # type: ignore[attr-defined]
    )
    return int(number)


def numbers(deliveries: Collection[Delivery]) -> list[int]:
    return [delivery.message.number for delivery in deliveries]
