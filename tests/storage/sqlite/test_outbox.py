"""Messages that are for no subscription: one writer knows all of these, and leaves such out."""

from dataclasses import replace

from forewarned.core.model import EventType
from forewarned.core.transitions import Approved, Transition
from forewarned.service.ports import Store
from forewarned.service.subscriptions.model import Filter, PublishedStatus, Subscription
from tests.builders import NOON, a_scope
from tests.service.subscriptions.messages import a_subscription
from tests.storage.conftest import OpenSqlite
from tests.storage.publishing_calls import EVENT, SCHEDULED, put, take
from tests.storage.store_calls import keep, save

APPROVED = Approved(scope_id=a_scope().id, at=NOON, event=EVENT)


def for_statuses(name: str, *statuses: PublishedStatus) -> Subscription:
    return a_subscription(name, filter=Filter(statuses=frozenset(statuses)))


async def published(store: Store, *facts: Transition) -> list[PublishedStatus]:
    """The messages that are written with these."""
    [saved] = await store.read(lambda snapshot: list(snapshot.scopes()))
    moved = replace(saved.scope, incarnation=saved.scope.incarnation + 1)
    commit = await save(store, moved, *facts)
    messages = await take(store)
    assert commit.is_for_publisher is bool(messages)
    return [message.status for message in messages]


async def test_a_message_is_written_if_one_subscription_is_for_it(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(
            store,
            for_statuses("ops", PublishedStatus.SCHEDULED),
            a_subscription("chat", filter=Filter(types=frozenset({EventType.FREEZE}))),
        )

        assert await published(store, SCHEDULED, APPROVED) == [PublishedStatus.SCHEDULED]
        assert await published(store, APPROVED) == []


async def test_what_a_subscription_is_for_counts_from_when_it_is_changed(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, for_statuses("ops", PublishedStatus.SCHEDULED))
        await put(store, for_statuses("ops", PublishedStatus.APPROVED))

        assert await published(store, SCHEDULED, APPROVED) == [PublishedStatus.APPROVED]

    async with sqlite() as store:
        assert await published(store, SCHEDULED, APPROVED) == [PublishedStatus.APPROVED]
