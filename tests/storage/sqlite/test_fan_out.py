"""Messages of one writer, which knows all subscriptions: written only if one wants them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from operator import methodcaller

from forewarned.core.ids import ResourceName
from forewarned.core.model import EventStatus, EventType
from forewarned.core.transitions import Approved, Canceled, Transition
from forewarned.service.ports import Snapshot, Store, Transaction
from forewarned.service.records import Commit
from forewarned.service.subscriptions.model import (
    Filter,
    PublishedStatus,
    Subscription,
    SubscriptionState,
)
from forewarned.storage.diff import fold
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.sqlite import fan_out
from forewarned.storage.sqlite.database import SqliteDatabase
from tests.builders import NOON, a_binding, a_profile, a_resource, a_scope
from tests.service.subscriptions.messages import a_message, a_subscription
from tests.storage.conftest import OpenSqlite
from tests.storage.publishing_calls import EVENT, SCHEDULED, count, put, queued, take
from tests.storage.relational.test_write_buffer import in_one_group
from tests.storage.sqlite.connections import connection_of
from tests.storage.sqlite.test_group_commit import fail_after
from tests.storage.store_calls import keep, save, save_in

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


def test_messages_are_stored_in_one_go_as_each_would_be_by_itself() -> None:
    """Also where a text has line ends, of whatever kind."""
    messages = [
        a_message(cause=cause, number=number)
        for number, cause in enumerate(["one\ntwo", "one\u2028two\r\x0b", ""])
    ]
    places = [outbox.NOWHERE, outbox.Place("/id", "here"), outbox.NOWHERE]

    contents = outbox.contents_of(messages, places)

    assert contents == list(map(outbox.content_of, messages, places))


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


async def test_i23_a_message_says_who_takes_it_from_the_commit_on_that_sends_it(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"), a_subscription("chat"))

        await approve(store)
        await put(store, a_subscription("late"))

        found = await queued(store)
        assert [(each.subscription, each.message.status) for each in found] == [
            ("chat", PublishedStatus.APPROVED),
            ("ops", PublishedStatus.APPROVED),
        ]
        assert {each.due_at for each in found} == {NOON}
        assert await count(store, "outbox") == 0


async def test_only_the_first_message_of_a_scope_is_due(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"))

        await approve(store, facts=[SCHEDULED, APPROVED])
        before = await queued(store)
        await approve(store)

        assert [each.due_at for each in before] == [NOON, None]
        assert [each.due_at for each in await queued(store)] == [NOON, None, None]


async def test_a_number_is_never_used_twice(sqlite: OpenSqlite) -> None:
    used: list[int] = []
    for _ in range(2):
        async with sqlite() as store:
            if not used:
                await keep(store, a_scope(EVENT))
                await put(store, a_subscription("ops"))
            await approve(store)
            await approve(store)
            used += [message.number for message in await take(store)]
            assert await count(store, "messages") == 0

    assert used == [1, 2, 3, 4]


async def test_a_subscription_that_is_removed_meanwhile_is_sent_nothing(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"), a_subscription("chat"))

        await in_one_group(
            store, send_approved, methodcaller("remove_subscription", "chat"), send_approved
        )

        assert {each.subscription for each in await queued(store)} == {"ops"}
        assert len(await take(store)) == 2

        await in_one_group(store, send_approved, methodcaller("remove_subscription", "ops"))
        assert (await queued(store), await count(store, "messages")) == ([], 0)


async def test_what_a_subscription_is_for_counts_for_its_whole_group(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, for_statuses("ops", PublishedStatus.APPROVED))
        other = for_statuses("ops", PublishedStatus.SCHEDULED)

        await in_one_group(
            store, send_approved, methodcaller("put_subscription", other), send_approved
        )

        assert await queued(store) == []


async def test_a_function_that_fails_sends_nothing_and_its_group_does(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"))

        await in_one_group(store, fail_after(send_approved), send_approved)

        assert len(await queued(store)) == 1


async def test_messages_of_a_paused_subscription_are_queued_as_all_others(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops", state=SubscriptionState.PAUSED))

        commit = await approve(store)

        assert commit.is_for_publisher
        assert len(await queued(store)) == 1


async def test_a_message_says_where_its_vm_is_now(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"))

        for location in ("westeurope", "northeurope", ""):
            await store.transact(partial(bind_in, location=location))
            await approve(store)
            await approve(store)

        places = [each.message.location for each in await queued(store)]
        assert places == [*2 * ["westeurope"], *2 * ["northeurope"], *2 * [""]]


async def test_a_message_says_where_its_vm_was_if_that_is_removed_in_its_group(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"))
        await store.transact(bind_in)

        await in_one_group(store, send_approved, remove_vm)

        places = [each.location for each in await take(store)]
        assert places == ["westeurope"] * 2


async def test_a_place_that_was_never_committed_is_forgotten(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"))
        await store.transact(bind_in)

        await in_one_group(
            store, fail_after(partial(bind_in, location="northeurope")), send_approved
        )
        await approve(store)

        assert [each.message.location for each in await queued(store)] == 2 * ["westeurope"]


async def test_places_are_looked_up_once_and_kept_up_to_a_limit(sqlite: OpenSqlite) -> None:
    vms = [ResourceName(f"VM{number}") for number in range(4)]
    async with sqlite() as store:
        await keep(store, a_scope(resources=[a_resource(name) for name in vms]))
        await store.transact(partial(bind_each, vms=vms))
        await store.read(partial(look_up_in_turns, vms=vms))


async def test_messages_are_queued_in_the_order_of_their_commit(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"), a_subscription("chat"))
        facts = [replace(APPROVED, at=NOON + timedelta(seconds=at)) for at in range(39)]

        await approve(store, facts=facts)

        for name in ("chat", "ops"):
            found = [each for each in await queued(store) if each.subscription == name]
            assert [each.message.at for each in found] == [fact.at for fact in facts]
            assert [each.due_at for each in found] == [NOON, *[None] * 38]


async def test_messages_of_one_commit_may_be_for_different_subscriptions(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, for_statuses("ops", PublishedStatus.APPROVED), a_subscription("chat"))

        await approve(store, facts=[SCHEDULED, APPROVED, APPROVED, SCHEDULED])

        found = [(each.subscription, each.message.number) for each in await queued(store)]
        assert sorted(found) == [*[("chat", n) for n in (1, 2, 3, 4)], ("ops", 2), ("ops", 3)]


async def test_no_more_messages_are_queued_at_a_time_than_are_asked_for(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"))
        await approve(store)
        await approve(store, facts=[SCHEDULED, *[APPROVED] * 6])

        steps = []
        for _ in range(3):
            taken, _ = await store.transact(methodcaller("take_outbox", limit=3))
            steps.append((await count(store, "deliveries"), taken.leaves_more))

        assert steps == [(3, True), (6, True), (8, False)]
        assert [each.message.number for each in await queued(store)] == [*range(1, 9)]
        assert await count(store, "addressed") == 0


async def test_what_many_subscriptions_take_counts_for_each_of_them(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        names = ("ops", "chat", "desk")
        await put(store, *map(a_subscription, names))
        await approve(store, facts=[APPROVED] * 4)

        made = []
        for limit in (1, 7, 7):
            taken, _ = await store.transact(methodcaller("take_outbox", limit=limit))
            made.append((await count(store, "deliveries"), taken.leaves_more))

        assert made == [(3, True), (9, True), (12, False)]


async def test_what_is_not_queued_yet_is_pending_since_it_was_written(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep(store, a_scope(EVENT))
        await put(store, a_subscription("ops"))
        await approve(store, facts=[APPROVED] * 2)

        later = NOON + timedelta(minutes=3)
        before = await store.read(methodcaller("subscription_health", now=later))
        found = await queued(store)
        after = await store.read(methodcaller("subscription_health", now=later))

        assert (before["ops"].pending, before["ops"].lag) == (2, timedelta(minutes=3))
        assert before == after
        assert {each.queued_at for each in found} == {NOON}


async def test_where_the_first_vm_is_not_known_another_one_says_where_they_are(
    sqlite: OpenSqlite,
) -> None:
    async with sqlite() as store:
        event = replace(EVENT, resources=(ResourceName("vm0"), *EVENT.resources))
        resources = [a_resource(name) for name in event.resources]
        await keep(store, a_scope(event, resources=resources))
        await put(store, a_subscription("ops"))
        await store.transact(bind_in)

        await approve(store, facts=[replace(APPROVED, event=event)])

        assert [each.message.location for each in await queued(store)] == ["westeurope"]


async def approve(store: Store, *, facts: Sequence[Transition] = (APPROVED,)) -> Commit:
    _, commit = await store.transact(partial(send, facts=facts))
    return commit


def send_approved(tx: Transaction) -> None:
    send(tx, [APPROVED])


def send(tx: Transaction, facts: Sequence[Transition]) -> None:
    scope = tx.load(a_scope().id)
    save_in(tx, replace(scope, incarnation=scope.incarnation + 1), *facts)


def remove_vm(tx: Transaction) -> None:
    scope = tx.load(a_scope().id)
    over = replace(EVENT, status=EventStatus.CANCELED)
    fact = Canceled(scope_id=scope.id, at=NOON, event=over, reason="")
    save_in(tx, replace(scope, events={}, resources={}), fact)


def bind_in(tx: Transaction, *, location: str = "westeurope") -> None:
    tx.bind(a_binding(profile=a_profile(location=location)))


def bind_each(tx: Transaction, *, vms: Sequence[ResourceName]) -> None:
    for number, name in enumerate(vms):
        tx.bind(a_binding(name, address=f"10.0.0.{number}"))


def look_up_in_turns(snapshot: Snapshot, *, vms: Sequence[ResourceName]) -> None:
    connection = connection_of(snapshot)
    database, places = SqliteDatabase(connection), fan_out.PlaceCache(limit=3)
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    for wanted, questions in [(vms[:2], 1), (vms[:2], 1), (vms[1:3], 2), (vms[2:], 3)]:
        found = places.find(database, wanted)
        assert [found[fold(name)].location for name in wanted] == 2 * ["westeurope"]
        assert (len(found) <= 3, len(asked)) == (True, questions)
    connection.set_trace_callback(None)
