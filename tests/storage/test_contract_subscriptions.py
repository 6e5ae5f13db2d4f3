"""Subscriptions, the outbox and deliveries in every store."""

from collections.abc import Collection
from dataclasses import replace
from operator import methodcaller

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.ids import ResourceName
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    Policy,
    Publishing,
    StartCause,
)
from forewarned.core.transitions import (
    Approved,
    Canceled,
    Completed,
    Interrupted,
    Scheduled,
    Stalled,
    Started,
)
from forewarned.service.ports import Store, Transaction
from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryFilter,
    DeliveryState,
    Filter,
    Health,
    Message,
    PublishedStatus,
    SubscriptionState,
)
from forewarned.service.subscriptions.targets import Apprise, Shape, ShapeName, Webhook
from tests.builders import (
    DAY,
    MINUTE,
    NOON,
    OPERATOR,
    SECOND,
    A,
    B,
    a_binding,
    a_profile,
    a_resource,
    a_scope,
    an_event,
)
from tests.service.subscriptions.messages import a_message, a_subscription
from tests.storage.store_calls import keep, save, save_in, settle_in

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
    taken, _ = await store.transact(lambda tx: tx.take_outbox(limit=limit))
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


async def listed(store: Store, state: DeliveryState | None = None) -> list[Delivery]:
    return await store.read(lambda snapshot: snapshot.deliveries(DeliveryFilter(state=state)))


async def count(store: Store, table: str) -> int:
    [[number]] = await store.read(
        lambda snapshot: snapshot._all(f"SELECT count(*) FROM {table}")  # type: ignore[attr-defined]
    )
    return int(number)


def numbers(deliveries: Collection[Delivery]) -> list[int]:
    return [delivery.message.number for delivery in deliveries]


# --- subscriptions -------------------------------------------------------------------------------


async def test_a_subscription_is_read_as_it_was_written(store: Store) -> None:
    await put(store, OPS, CHAT)

    assert await store.read(methodcaller("subscription", "chat")) == CHAT
    assert await store.read(methodcaller("subscription", "nobody")) is None
    assert await store.read(lambda snapshot: snapshot.subscriptions()) == [CHAT, OPS]


async def test_a_subscription_can_be_replaced_and_keeps_its_health(store: Store) -> None:
    await put(store, OPS)
    await store.transact(methodcaller("note_health", "ops", delivered=2, failed=0, error=""))
    changed = replace(OPS, target=Webhook(url="http://127.0.0.1:2/", secrets=("whsec_a",)))

    await put(store, changed)

    assert await store.read(methodcaller("subscription", "ops")) == changed
    health = await store.read(lambda snapshot: snapshot.subscription_health(now=NOON))
    assert health == {"ops": Health(delivered=2, last_delivered_at=NOON)}


async def test_a_subscription_goes_with_its_deliveries_and_leaves_those_of_others(
    store: Store,
) -> None:
    await put(store, OPS, CHAT)
    await queue(store, a_message(number=1), names=["ops"])
    await queue(store, a_message(number=2), names=["ops", "chat"])

    await store.transact(methodcaller("remove_subscription", "ops"))

    assert [each.key for each in await listed(store)] == [("chat", 2)]
    assert await count(store, "messages") == 1


# --- the outbox ----------------------------------------------------------------------------------


async def test_i23_a_message_is_written_with_its_transition_while_there_is_a_subscription(
    store: Store,
) -> None:
    scope = a_scope()
    await keep(store, scope)
    before = await save(store, replace(scope, events={A: EVENT}), SCHEDULED)
    await put(store, OPS)
    during = await save(
        store,
        replace(scope, events={}),
        Canceled(
            scope_id=scope.id,
            at=NOON,
            event=replace(EVENT, status=EventStatus.CANCELED),
            reason="not today",
        ),
    )
    await store.transact(methodcaller("remove_subscription", "ops"))
    after = await save(
        store,
        replace(scope, events={B: an_event(B)}),
        Scheduled(scope_id=scope.id, at=NOON, event=an_event(B)),
    )

    [message] = await take(store)
    assert (message.status, message.cause) == (PublishedStatus.CANCELED, "not today")
    assert [each.is_for_publisher for each in (before, during, after)] == [False, True, False]


async def test_i23_a_message_is_not_written_without_its_transition(store: Store) -> None:
    scope = a_scope()
    await put(store, OPS)
    await keep(store, scope)

    def fails(tx: Transaction) -> None:
        save_in(tx, replace(scope, events={A: EVENT}), SCHEDULED)
        raise ValueError

    with pytest.raises(ValueError):
        await store.transact(fails)

    assert await take(store) == []


async def test_a_message_tells_all_of_its_transition(store: Store) -> None:
    policy = Policy(publishing=Publishing(enabled=True, api_version="2020-07-01"))
    event = an_event(A, resources=["vm1", "vm2"], description="a line", duration=9 * SECOND)
    started = replace(event, status=EventStatus.STARTED, not_before=None)
    scope = a_scope(event, policy=policy)
    await put(store, OPS)
    await keep(store, scope)
    await store.transact(methodcaller("bind", a_binding("vm2")))

    facts = [
        Approved(scope_id=scope.id, at=NOON, event=event),
        Started(scope_id=scope.id, at=NOON, event=started, cause=StartCause.APPROVED),
        Interrupted(scope_id=scope.id, at=NOON, event=started, vms=(ResourceName("vm1"),)),
        Stalled(
            scope_id=scope.id, at=NOON, event=started, vms=(ResourceName("vm2"),), reason="no room"
        ),
    ]
    await save(store, replace(scope, events={A: started}), *facts)

    approved, began, stalled = await take(store)
    assert approved == replace(
        a_message(PublishedStatus.APPROVED, event=event, publishing=policy.publishing),
        id=approved.id,
        number=approved.number,
        resource_id=began.resource_id,
        location="westeurope",
    )
    assert began.resource_id.endswith("/providers/Microsoft.Compute/virtualMachines/vm2")
    assert (began.status, began.event, began.cause) == (
        PublishedStatus.STARTED,
        started,
        "approved",
    )
    assert (stalled.vms, stalled.cause) == (("vm2",), "no room")
    assert approved.number < began.number < stalled.number
    assert len({approved.id, began.id, stalled.id}) == 3
    assert await take(store) == []


async def test_a_message_of_a_vm_that_goes_with_it_says_where_that_vm_was(store: Store) -> None:
    event = an_event(A, type=EventType.TERMINATE, status=EventStatus.STARTED)
    scope = a_scope(event)
    profile = replace(a_profile(), scale_set="web")
    await put(store, OPS)

    def settle(tx: Transaction) -> None:
        settle_in(tx, scope)
        tx.bind(a_binding(profile=profile))

    await store.transact(settle)
    over = replace(event, status=EventStatus.COMPLETED)

    await save(
        store,
        replace(scope, events={}, resources={}),
        Completed(scope_id=scope.id, at=NOON, event=over),
    )

    [message] = await take(store)
    assert message.resource_id.endswith("/virtualMachineScaleSets/web")
    assert message.location == "westeurope"


async def test_messages_of_a_scope_are_taken_in_the_order_of_its_commits(store: Store) -> None:
    scope = a_scope(EVENT)
    await put(store, OPS)
    await keep(store, scope)
    for number in range(5):
        moved = replace(scope, incarnation=2 + number)
        await save(
            store, moved, Approved(scope_id=scope.id, at=NOON + number * SECOND, event=EVENT)
        )

    first, then = await take(store, limit=3), await take(store)

    assert [message.at for message in (*first, *then)] == [NOON + n * SECOND for n in range(5)]
    assert len(first) == 3


# --- deliveries ----------------------------------------------------------------------------------


async def test_only_the_first_delivery_of_a_scope_is_claimed_until_it_has_arrived(
    store: Store,
) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1), a_message(number=2), a_message(number=3))
    await queue(store, a_message(number=4, scope_id="scope2"))

    claimed = await claim(store)
    again = await claim(store)
    await store.transact(methodcaller("end_delivery", claimed[0]))
    then = await claim(store)

    assert numbers(claimed) == [1, 4]
    assert again == []
    assert numbers(then) == [2]
    assert await count(store, "messages") == 3


async def test_what_comes_while_the_first_is_under_way_waits_for_it(store: Store) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    [first] = await claim(store)
    await queue(store, a_message(number=2))

    assert await claim(store) == []
    await store.transact(methodcaller("end_delivery", first))
    assert numbers(await claim(store)) == [2]


async def test_a_claim_that_is_over_is_taken_over(store: Store, clock: VirtualClock) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    [mine] = await claim(store)
    await clock.step(MINUTE)

    [theirs] = await claim(store, by=OTHER)
    held, _ = await store.transact(lambda tx: tx.claimed([mine.key], by=NODE))
    held_there, _ = await store.transact(lambda tx: tx.claimed([mine.key], by=OTHER))

    assert theirs.key == mine.key
    assert held == []
    assert [each.key for each in held_there] == [mine.key]


async def test_claims_can_be_given_back(store: Store) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    await claim(store)

    await store.transact(methodcaller("release_deliveries", by=OTHER))
    theirs = await claim(store, by=OTHER)
    await store.transact(methodcaller("release_deliveries", by=NODE))

    assert theirs == []
    assert numbers(await claim(store, by=OTHER)) == [1]


async def test_a_delivery_that_is_put_off_is_due_then_and_the_next_waits_for_it(
    store: Store, clock: VirtualClock
) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1), a_message(number=2))
    [first] = await claim(store)
    later = replace(
        first, attempts=1, tried_at=NOON, due_at=NOON + MINUTE, last_error="500 from there"
    )

    await store.transact(methodcaller("put_delivery", later))
    soon = await claim(store)
    at, _ = await store.transact(lambda tx: tx.next_delivery_at(["ops"], by=NODE))
    await clock.step(MINUTE)
    then = await claim(store)

    assert soon == []
    assert at == NOON + MINUTE
    assert then == [later]


async def test_the_next_goes_when_one_is_given_up_and_has_waited_as_long(store: Store) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1), a_message(number=2))
    [first] = await claim(store)
    given_up = replace(
        first, state=DeliveryState.UNDELIVERED, due_at=None, given_up_at=NOON, attempts=9
    )

    await store.transact(methodcaller("put_delivery", given_up))

    [second] = await claim(store)
    assert (second.message.number, second.tried_at) == (2, NOON)
    assert await listed(store, DeliveryState.UNDELIVERED) == [given_up]


async def test_deliveries_to_others_don_t_wait(store: Store) -> None:
    await put(store, OPS, CHAT)
    await queue(store, a_message(number=1), a_message(number=2), names=["ops", "chat"])

    claimed = await claim(store, names=["ops"])
    others = await claim(store, names=["chat"])
    both = await claim(store, names=["ops", "chat"])
    none = await claim(store, names=[])

    assert [each.key for each in (*claimed, *others)] == [("ops", 1), ("chat", 1)]
    assert both == none == []


async def test_no_more_are_claimed_than_are_wanted_the_longest_due_first(
    store: Store, clock: VirtualClock
) -> None:
    await put(store, OPS)
    for number in (3, 1, 2):
        await queue(store, a_message(number=number, scope_id=f"scope{number}"))
        await clock.step(SECOND)

    assert numbers(await claim(store, most=2)) == [3, 1]


async def test_undelivered_messages_can_be_delivered_again_in_their_order(store: Store) -> None:
    await put(store, OPS)
    await queue(store, *(a_message(number=number) for number in (1, 2, 3)))
    for _ in range(2):
        [first] = await claim(store)
        given_up = replace(
            first, state=DeliveryState.UNDELIVERED, due_at=None, given_up_at=NOON, attempts=9
        )
        await store.transact(methodcaller("put_delivery", given_up))

    found, _ = await store.transact(methodcaller("redeliver", "ops"))

    assert found == 2
    for number in (1, 2, 3):
        [next_] = await claim(store)
        assert (next_.message.number, next_.state, next_.attempts) == (
            number,
            DeliveryState.PENDING,
            0,
        )
        await store.transact(methodcaller("end_delivery", next_))
    assert await count(store, "messages") == 0


async def test_one_message_can_be_delivered_again_alone(store: Store) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1), a_message(number=2))
    for _ in range(2):
        [first] = await claim(store)
        given_up = replace(first, state=DeliveryState.UNDELIVERED, due_at=None, given_up_at=NOON)
        await store.transact(methodcaller("put_delivery", given_up))

    await store.transact(methodcaller("redeliver", "ops", [2]))

    assert numbers(await claim(store)) == [2]
    assert numbers(await listed(store, DeliveryState.UNDELIVERED)) == [1]


async def test_what_is_under_way_is_finished_before_an_earlier_one_is_delivered_again(
    store: Store,
) -> None:
    """Never two of one scope at a time."""
    await put(store, OPS)
    await queue(store, a_message(number=1), a_message(number=2))
    [first] = await claim(store)
    given_up = replace(first, state=DeliveryState.UNDELIVERED, due_at=None, given_up_at=NOON)
    await store.transact(methodcaller("put_delivery", given_up))
    [second] = await claim(store)

    await store.transact(methodcaller("redeliver", "ops"))
    meanwhile = await claim(store)
    put_off = replace(second, attempts=1, tried_at=NOON, due_at=NOON + MINUTE)
    await store.transact(methodcaller("put_delivery", put_off))

    assert meanwhile == []
    assert numbers(await claim(store)) == [1]


async def test_pending_messages_are_due_at_once_if_they_are_asked_for(store: Store) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    [first] = await claim(store)
    await store.transact(methodcaller("put_delivery", replace(first, due_at=NOON + DAY / 24)))

    found, commit = await store.transact(methodcaller("redeliver", "ops"))

    assert found == 1
    assert commit.is_for_publisher
    assert numbers(await claim(store)) == [1]


async def test_health_tells_of_attempts_and_of_what_is_left(
    store: Store, clock: VirtualClock
) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1), a_message(number=2))
    await store.transact(methodcaller("note_health", "ops", delivered=3, failed=0, error=""))
    await clock.step(MINUTE)
    await store.transact(methodcaller("note_health", "ops", delivered=0, failed=2, error="500"))

    health = await store.read(lambda snapshot: snapshot.subscription_health(now=clock.now()))

    assert health == {
        "ops": Health(
            delivered=3,
            last_delivered_at=NOON,
            failed=2,
            failures=2,
            last_failed_at=NOON + MINUTE,
            last_error="500",
            pending=2,
            lag=MINUTE,
        )
    }


async def test_undelivered_messages_are_forgotten_in_time(store: Store) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1), a_message(number=2, scope_id="scope2"))
    for delivery in await claim(store):
        given_up = replace(
            delivery,
            state=DeliveryState.UNDELIVERED,
            due_at=None,
            given_up_at=NOON + delivery.message.number * SECOND,
        )
        await store.transact(methodcaller("put_delivery", given_up))

    forgotten, _ = await store.transact(lambda tx: tx.forget_undelivered(before=NOON + 2 * SECOND))

    assert forgotten == 1
    assert numbers(await listed(store)) == [2]
    assert await count(store, "messages") == 1


async def test_a_clock_that_was_put_back_keeps_nothing_waiting(
    store: Store, clock: VirtualClock
) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    [first] = await claim(store)
    await store.transact(methodcaller("put_delivery", replace(first, due_at=NOON + DAY)))

    assert numbers(await claim(store)) == [1]


async def test_vms_of_a_set_are_published_with_the_set(store: Store) -> None:
    scope = a_scope(resources=[a_resource("vm1")])
    await put(store, OPS)
    await keep(store, scope)
    profile = replace(a_profile(), availability_set="web")
    await store.transact(methodcaller("bind", a_binding(profile=profile)))

    def schedule(tx: Transaction) -> None:
        loaded = tx.load(scope.id)
        save_in(tx, replace(loaded, events={A: EVENT}), SCHEDULED)

    await store.transact(schedule)

    [message] = await take(store)
    assert message.resource_id.endswith("/availabilitySets/web")
    assert message.actor == OPERATOR.name
