"""Subscriptions and deliveries in every store."""

from collections.abc import Mapping
from dataclasses import replace
from operator import methodcaller

from forewarned.clock import VirtualClock
from forewarned.service.ports import Store, Transaction
from forewarned.service.subscriptions.model import (
    DeliveryFilter,
    DeliveryState,
    Forgotten,
    Health,
    Rest,
)
from forewarned.service.subscriptions.targets import Webhook
from tests.builders import (
    DAY,
    MINUTE,
    NOON,
    SECOND,
)
from tests.service.subscriptions.messages import a_message
from tests.storage.publishing_calls import (
    CHAT,
    NODE,
    OPS,
    OTHER,
    claim,
    count,
    listed,
    numbers,
    put,
    queue,
)


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


async def test_a_claim_is_to_be_looked_at_when_it_is_over_by_whoever_has_it(store: Store) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    await claim(store)

    at, _ = await store.transact(methodcaller("next_delivery_at", ["ops"]))

    assert at == NOON + MINUTE


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
    at, _ = await store.transact(lambda tx: tx.next_delivery_at(["ops"]))
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


async def test_a_rest_is_kept_and_told_until_it_is_over(store: Store, clock: VirtualClock) -> None:
    await put(store, OPS, CHAT)
    rest = Rest(2, NOON + MINUTE)
    await store.transact(
        methodcaller("note_health", "ops", delivered=0, failed=1, error="429", rest=rest)
    )

    rests, _ = await store.transact(methodcaller("rests"))
    during = await store.read(lambda snapshot: snapshot.subscription_health(now=clock.now()))
    await clock.step(MINUTE)
    then = await store.read(lambda snapshot: snapshot.subscription_health(now=clock.now()))
    still, _ = await store.transact(methodcaller("rests"))
    await store.transact(methodcaller("note_health", "ops", delivered=1, failed=0, error=""))
    after, _ = await store.transact(methodcaller("rests"))

    assert rests == still == {"ops": rest}
    assert [during[name].rests_until for name in ("ops", "chat")] == [NOON + MINUTE, None]
    assert then["ops"].rests_until is None
    assert after == {}


async def test_a_rest_is_over_if_messages_are_asked_for_or_the_subscription_is_changed(
    store: Store,
) -> None:
    await put(store, OPS, CHAT)
    await queue(store, a_message(number=1))
    rest = Rest(2, NOON + MINUTE)
    for name in ("ops", "chat"):
        await store.transact(
            methodcaller("note_health", name, delivered=0, failed=1, error="429", rest=rest)
        )

    found, _ = await store.transact(methodcaller("redeliver", "ops"))
    again, _ = await store.transact(methodcaller("redeliver", "ops"))
    await put(store, CHAT)

    rests, _ = await store.transact(methodcaller("rests"))
    assert (found, again) == (1, 0)
    assert rests == {"ops": Rest(1, NOON), "chat": Rest(1, NOON)}


async def test_it_is_known_which_subscriptions_a_node_is_delivering_to(
    store: Store, clock: VirtualClock
) -> None:
    await put(store, OPS, CHAT)
    await queue(store, a_message(number=1), names=["ops", "chat"])
    await claim(store)

    def under_way(tx: Transaction) -> tuple[frozenset[str], frozenset[str]]:
        return tx.subscriptions_under_way(["ops", "chat"]), tx.subscriptions_under_way(["chat"])

    during, _ = await store.transact(under_way)
    await clock.step(MINUTE)
    then, _ = await store.transact(under_way)

    assert during == (frozenset({"ops"}), frozenset())
    assert then == (frozenset(), frozenset())


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

    forgotten, _ = await store.transact(
        lambda tx: tx.forget_deliveries(
            given_up_before=NOON + 2 * SECOND, queued_before=NOON, limit=10
        )
    )

    assert forgotten == {"ops": Forgotten(undelivered=1)}
    assert numbers(await listed(store)) == [2]
    assert await count(store, "messages") == 1


async def test_messages_that_are_never_tried_are_forgotten_in_time_and_the_next_goes(
    store: Store, clock: VirtualClock
) -> None:
    """None that is under way."""
    await put(store, OPS)
    await queue(store, a_message(number=1, scope_id="scope2"))
    await claim(store)
    await queue(store, a_message(number=2), a_message(number=3))
    await clock.step(2 * SECOND)
    await queue(store, a_message(number=4))

    forgotten, _ = await store.transact(
        lambda tx: tx.forget_deliveries(given_up_before=NOON, queued_before=NOON + SECOND, limit=10)
    )

    assert forgotten == {"ops": Forgotten(pending=2)}
    assert numbers(await listed(store)) == [1, 4]
    assert numbers(await claim(store)) == [4]


async def test_what_is_forgotten_is_counted_and_no_more_at_a_time_than_is_said(
    store: Store, clock: VirtualClock
) -> None:
    """The oldest first, so that the order within a scope is kept."""
    await put(store, OPS, CHAT)
    await queue(store, *(a_message(number=number) for number in (1, 2, 3)), names=["ops", "chat"])
    await clock.step(SECOND)

    def forget(tx: Transaction) -> tuple[Mapping[str, Forgotten], list[int]]:
        forgotten = tx.forget_deliveries(given_up_before=NOON, queued_before=clock.now(), limit=4)
        return forgotten, numbers(tx.deliveries(DeliveryFilter()))

    first, _ = await store.transact(forget)
    due = await claim(store, names=["ops", "chat"])
    await store.transact(methodcaller("release_deliveries", by=NODE))
    second, _ = await store.transact(forget)

    health = await store.read(lambda snapshot: snapshot.subscription_health(now=NOON))
    assert first == ({"ops": Forgotten(pending=2), "chat": Forgotten(pending=2)}, [3, 3])
    assert numbers(due) == [3, 3]
    assert second == ({"ops": Forgotten(pending=1), "chat": Forgotten(pending=1)}, [])
    assert [health[name].removed for name in ("ops", "chat")] == [3, 3]
    assert await count(store, "messages") == 0


async def test_what_has_waited_for_long_can_be_given_up_and_the_next_goes(
    store: Store, clock: VirtualClock
) -> None:
    """The oldest first, none that is under way, and of that subscription alone."""
    await put(store, OPS, CHAT)
    await queue(store, a_message(number=1, scope_id="scope2"))
    await claim(store)
    both = "ops", "chat"
    await queue(store, *(a_message(number=number) for number in (2, 3, 4)), names=both)
    await queue(store, a_message(number=5, scope_id="scope3"))
    await clock.step(2 * SECOND)
    await queue(store, a_message(number=6))

    def give_up(tx: Transaction) -> int:
        return tx.give_up_waiting("ops", before=NOON + SECOND, error="503", limit=3)

    first, _ = await store.transact(give_up)
    due = numbers(await claim(store))
    await store.transact(methodcaller("release_deliveries", by=NODE))
    second, _ = await store.transact(give_up)

    given_up = await listed(store, DeliveryState.UNDELIVERED)
    assert (first, second, due) == (3, 2, [5, 6])
    assert [(each.message.number, each.last_error) for each in given_up] == [
        (number, "503") for number in (1, 2, 3, 4, 5)
    ]
    assert {(each.given_up_at, each.due_at) for each in given_up} == {(NOON + 2 * SECOND, None)}
    assert sorted(numbers(await claim(store, names=both))) == [2, 6]


async def test_nothing_is_given_up_where_something_was_delivered_since(
    store: Store, clock: VirtualClock
) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    await clock.step(SECOND)
    await store.transact(methodcaller("note_health", "ops", delivered=1, failed=0, error=""))

    before, _ = await store.transact(
        lambda tx: tx.give_up_waiting("ops", before=NOON + SECOND, error="503", limit=3)
    )
    after, _ = await store.transact(
        lambda tx: tx.give_up_waiting("ops", before=NOON + 2 * SECOND, error="503", limit=3)
    )

    assert (before, after) == (0, 1)


async def test_a_clock_that_was_put_back_keeps_nothing_waiting(
    store: Store, clock: VirtualClock
) -> None:
    await put(store, OPS)
    await queue(store, a_message(number=1))
    [first] = await claim(store)
    await store.transact(methodcaller("put_delivery", replace(first, due_at=NOON + DAY)))

    assert numbers(await claim(store)) == [1]
