"""The publisher: at least once, in order, patient with targets, and quick to let others go on."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from forewarned.core.model import EventType
from forewarned.publishing.messenger import TargetMessenger
from forewarned.publishing.ports import Target
from forewarned.publishing.retries import GIVE_UP_AFTER
from forewarned.publishing.turn import MOST, MOST_REMOVED
from forewarned.service.ports import Transaction
from forewarned.service.subscriptions.model import DeliveryState, Filter, Message, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome, Refused
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.subscriptions import MOST as MOST_SUBSCRIPTIONS
from forewarned.service.subscriptions.subscriptions import Declared
from tests.builders import DAY, HOUR, MINUTE, OPERATOR, SECOND, an_event
from tests.publishing.stage import NODE, Stage, a_stage, until
from tests.service.subscriptions.messages import a_message, a_subscription
from tests.storage.publishing_calls import queued

T = TypeVar("T")

OPS, CHAT = a_subscription("ops"), a_subscription("chat")
BUSY = Later(reason="503 Service Unavailable")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with a_stage() as stage:
        await stage.subscribe(OPS)
        yield stage


def failing(*times: Outcome) -> Callable[[Message, Subscription], Outcome]:
    """These outcomes first, and then what is delivered."""
    outcomes = iter(times)
    return lambda *_: next(outcomes, Delivered())


# --- order ---------------------------------------------------------------------------------------


async def test_messages_of_a_scope_arrive_one_after_another_in_their_order(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    async with stage.publisher():
        for _ in range(3):
            await stage.happen()
        for number in range(3):
            await stage.targets.wait_for(number + 1)
            [attempt] = stage.targets.open
            attempt.answer.set_result(Delivered())
        await stage.settled(delivered=3)

    assert stage.targets.seen() == [0, 1, 2]
    assert await stage.deliveries() == []


async def test_what_was_written_before_the_publisher_ran_is_delivered(stage: Stage) -> None:
    await stage.happen()
    await stage.happen()

    async with stage.publisher():
        await stage.settled(delivered=2)

    assert stage.targets.seen() == [0, 1]


async def test_scopes_and_subscriptions_don_t_wait_for_each_other(stage: Stage) -> None:
    await stage.subscribe(CHAT)
    stage.targets.script = lambda message, subscription: (
        None if (message.scope_id, subscription.name) == ("scope1", "ops") else Delivered()
    )
    async with stage.publisher():
        for scope_id in ("scope1", "scope1", "scope2"):
            await stage.happen(scope_id)
        await stage.settled("chat", delivered=3)
        await stage.settled("ops", delivered=1)

    told: dict[str, list[int]] = {"ops": [], "chat": []}
    for attempt in stage.targets.attempts:
        told[attempt.subscription].append(attempt.cause)
    assert told["ops"] == [0, 2]
    assert sorted(told["chat"]) == [0, 1, 2]


async def test_a_subscription_gets_what_its_filter_takes(stage: Stage) -> None:
    await stage.subscribe(
        a_subscription("freezes", filter=Filter(types=frozenset({EventType.FREEZE})))
    )
    async with stage.publisher():
        await stage.happen()
        await stage.happen("scope2", event=an_event(type=EventType.FREEZE, resources=["vm2"]))
        await stage.settled("ops", delivered=2)
        await stage.settled("freezes", delivered=1)

    [freeze] = [each for each in stage.targets.attempts if each.subscription == "freezes"]
    assert freeze.message.event.type is EventType.FREEZE


async def test_a_subscription_gets_only_what_its_shape_can_say(stage: Stage) -> None:
    """Azure has no status Approved."""
    grid = Shape(name=ShapeName.EVENT_GRID, every_scope=True)
    await stage.subscribe(a_subscription("grid", shape=grid))
    async with stage.publisher():
        await stage.happen()
        await stage.settled("ops", delivered=1)

    assert [each.subscription for each in stage.targets.attempts] == ["ops"]


async def test_messages_that_nobody_wants_are_dropped(stage: Stage) -> None:
    await stage.subscribe(a_subscription("ops", filter=Filter(vms=("none",))))
    async with stage.publisher():
        await stage.happen()
        await stage.subscribe(OPS)
        await stage.happen()
        await stage.settled(delivered=1)

    assert stage.targets.seen() == [1]


# --- failures ------------------------------------------------------------------------------------


async def test_what_fails_is_tried_again_later_with_the_same_id_and_the_next_waits(
    stage: Stage,
) -> None:
    stage.targets.script = failing(BUSY, BUSY)
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        await stage.settled(failed=1)
        await stage.pass_time(SECOND)
        await stage.settled(failed=2)
        await stage.pass_time(2 * SECOND)
        await stage.settled(delivered=2)

    assert stage.targets.seen() == [0, 0, 0, 1]
    assert len({each.message.id for each in stage.targets.attempts[:3]}) == 1


async def test_a_target_that_asks_for_time_gets_it(stage: Stage) -> None:
    stage.targets.script = failing(Later(reason="429", retry_after=MINUTE))
    async with stage.publisher():
        await stage.happen()
        await stage.settled(failed=1)
        await stage.pass_time(MINUTE - SECOND)
        before = len(stage.targets.attempts)
        await stage.pass_time(SECOND)
        await stage.settled(delivered=1)

    assert before == 1


async def test_a_message_is_given_up_after_a_day_and_the_next_goes(stage: Stage) -> None:
    stage.targets.script = lambda message, _: BUSY if message.at.second == 0 else Delivered()
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        await stage.settled(failed=1)
        for attempt in range(2, 60):
            await stage.pass_time(HOUR)
            await stage.settled(failed=attempt)
            if await stage.deliveries(DeliveryState.UNDELIVERED):
                break
        await stage.pass_time(MINUTE)
        await stage.settled(delivered=1)

    [given_up] = await stage.deliveries()
    assert given_up.state is DeliveryState.UNDELIVERED
    assert given_up.tried_at is not None
    assert given_up.given_up_at is not None
    assert given_up.given_up_at - given_up.tried_at >= GIVE_UP_AFTER
    assert stage.targets.seen()[-1] == 1
    assert (await stage.health()).undelivered == 1


async def test_what_waited_behind_a_dead_target_for_a_day_is_tried_once(stage: Stage) -> None:
    stage.targets.script = lambda *_: BUSY
    async with stage.publisher():
        for _ in range(3):
            await stage.happen()
        await stage.settled(failed=1)
        await queued(stage.store)
        await stage.pass_time(DAY)
        for number in (2, 3, 4):
            await stage.settled(failed=number)
            await stage.pass_time(MINUTE)

    assert stage.targets.seen() == [0, 0, 1, 2]
    assert [each.state for each in await stage.deliveries()] == [DeliveryState.UNDELIVERED] * 3


async def test_a_refusal_is_kept_as_undelivered_and_the_next_goes(stage: Stage) -> None:
    stage.targets.script = failing(Refused(reason="404 Not Found"))
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        await stage.settled(delivered=1, failed=1)

    [refused] = await stage.deliveries()
    assert (refused.state, refused.last_error) == (DeliveryState.UNDELIVERED, "404 Not Found")
    assert stage.targets.seen() == [0, 1]


async def test_undelivered_messages_are_delivered_on_request(stage: Stage) -> None:
    stage.targets.script = failing(Refused(reason="404"), Refused(reason="404"))
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        await stage.settled(failed=2)
        found = await stage.subscriptions.redeliver("ops", by=OPERATOR)
        await stage.settled(delivered=2)

    assert found == 2
    assert stage.targets.seen() == [0, 1, 0, 1]


async def test_undelivered_messages_are_kept_for_a_month(stage: Stage) -> None:
    stage.targets.script = failing(Refused(reason="404"))
    async with stage.publisher():
        await stage.happen()
        await stage.settled(failed=1)
        await stage.pass_time(29 * DAY)
        await stage.happen("scope2")
        await stage.settled(delivered=1)
        before = await stage.deliveries()
        await stage.pass_time(2 * DAY)
        await stage.happen("scope2")
        await stage.settled(delivered=2)

    assert len(before) == 1
    assert await stage.deliveries() == []


async def test_what_is_kept_for_minutes_is_removed_minutes_later(stage: Stage) -> None:
    stage.targets.script = failing(Refused(reason="404"))
    async with stage.publisher(keep_undelivered=10 * MINUTE):
        await stage.happen()
        await stage.settled(failed=1)
        await stage.pass_time(9 * MINUTE)
        await stage.happen("scope2")
        await stage.settled(delivered=1)
        before = await stage.deliveries()
        await stage.pass_time(2 * MINUTE)
        await stage.happen("scope2")
        await stage.settled(delivered=2)

    assert len(before) == 1
    assert await stage.deliveries() == []


async def test_what_is_removed_because_it_is_too_old_is_told(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Also what was never tried: nobody has heard of that before."""

    def queue(tx: Transaction) -> None:
        for number in range(MOST_REMOVED + 1):
            tx.queue(a_message(number=number, scope_id=f"scope{number % 3}"), ["ops"])

    await stage.subscriptions.pause("ops", by=OPERATOR)
    await stage.engine.decide(queue)
    await stage.pass_time(31 * DAY + SECOND)
    async with stage.publisher():
        await until(lambda: len(removals(caplog)) == 1)
        await stage.pass_time(SECOND)
        await until(lambda: len(removals(caplog)) == 2)

    assert [
        (each.subscription, each.pending, each.undelivered)  # type: ignore[attr-defined]
        for each in removals(caplog)
    ] == [("ops", MOST_REMOVED, 0), ("ops", 1, 0)]
    health = await stage.health()
    assert (health.pending, health.removed) == (0, MOST_REMOVED + 1)


def removals(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [each for each in caplog.records if "too old" in each.getMessage()]


async def test_a_defect_of_a_target_is_no_end(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(message: Message, subscription: Subscription) -> Outcome:
        stage.targets.script = lambda *_: Delivered()
        raise RuntimeError("a defect")

    stage.targets.script = breaks
    async with stage.publisher():
        await stage.happen()
        await stage.settled(failed=1)
        await stage.pass_time(SECOND)
        await stage.settled(delivered=1)

    assert "a delivery failed" in caplog.text


async def test_health_tells_how_a_subscription_fares(stage: Stage) -> None:
    stage.targets.script = failing(BUSY)
    async with stage.publisher():
        await stage.happen()
        await stage.settled(failed=1)
        await stage.pass_time(timedelta(seconds=0.5))
        await stage.happen()
        ill = await stage.health()
        await stage.pass_time(SECOND)
        await stage.settled(delivered=2)

    well = await stage.health()
    assert (ill.failures, ill.pending, ill.last_error) == (1, 2, BUSY.reason)
    assert (well.failures, well.failed, well.delivered, well.pending) == (0, 1, 2, 0)
    assert well.last_delivered_at == stage.clock.now()


# --- how many at a time --------------------------------------------------------------------------


async def test_so_many_attempts_are_under_way_and_no_target_has_all_places(stage: Stage) -> None:
    await stage.subscribe(CHAT, a_subscription("mail"))
    stage.targets.script = lambda *_: None
    for number in range(20):
        await stage.happen(f"scope{number}")

    async with stage.publisher():
        await stage.targets.wait_for(MOST)
        await stage.happen("another")
        under_way = [each.subscription for each in stage.targets.attempts]

    assert len(under_way) == MOST
    assert max(under_way.count(name) for name in ("ops", "chat", "mail")) <= 8
    assert min(under_way.count(name) for name in ("ops", "chat", "mail")) >= 5


async def test_subscriptions_with_nothing_to_deliver_keep_no_place(stage: Stage) -> None:
    nothing = Filter(vms=("none",))
    others = [a_subscription(f"a{number}", filter=nothing) for number in range(2 * MOST)]
    await stage.subscribe(*others)
    async with stage.publisher():
        await stage.happen()
        await stage.settled("ops", delivered=1)


async def test_a_target_that_fails_is_tried_one_at_a_time(stage: Stage) -> None:
    for number in range(5):
        await stage.happen(f"scope{number}")
    stage.targets.script = failing(BUSY, BUSY, BUSY, BUSY, BUSY)
    async with stage.publisher():
        await stage.settled(failed=5)
        stage.targets.script = lambda *_: None
        await stage.pass_time(MINUTE)
        await stage.targets.wait_for(6)
        await stage.happen("another")
        open_before = len(stage.targets.open)
        for attempt in stage.targets.open:
            attempt.answer.set_result(Delivered())
        await stage.targets.wait_for(6 + 5)

    assert open_before == 1


async def test_what_another_node_had_meanwhile_is_not_begun_twice(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    async with stage.publisher():
        await stage.happen()
        [attempt] = await stage.targets.wait_for(1)
        await stage.store.transact(lambda tx: tx.release_deliveries(by=NODE))
        await stage.happen("scope2")
        await stage.targets.wait_for(2)
        attempt.answer.set_result(Delivered())
        await stage.settled(delivered=1)

    assert stage.targets.seen() == [0]


# --- pausing, changing, removing -----------------------------------------------------------------


async def test_a_paused_subscription_gets_its_messages_when_it_is_resumed(stage: Stage) -> None:
    await stage.subscriptions.pause("ops", by=OPERATOR)
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        await until_queued(stage, 2)
        before = list(stage.targets.attempts)
        await stage.subscriptions.resume("ops", by=OPERATOR)
        await stage.settled(delivered=2)

    assert before == []
    assert stage.targets.seen() == [0, 1]


async def test_a_resumed_subscription_has_a_day_for_what_was_kept(stage: Stage) -> None:
    stage.targets.script = failing(BUSY, BUSY)
    async with stage.publisher():
        await stage.happen()
        await stage.settled(failed=1)
        await stage.subscriptions.pause("ops", by=OPERATOR)
        await stage.happen()
        await stage.pass_time(3 * DAY)
        await stage.subscriptions.resume("ops", by=OPERATOR)
        await stage.settled(failed=2)
        await stage.pass_time(HOUR)
        await stage.settled(delivered=2)

    assert stage.targets.seen() == [0, 0, 0, 1]
    assert await stage.deliveries() == []


async def until_queued(stage: Stage, number: int) -> None:
    while len(await stage.deliveries()) < number:
        pass


async def test_a_subscription_that_is_removed_gets_no_more(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        [attempt] = await stage.targets.wait_for(1)
        await stage.subscriptions.remove("ops", by=OPERATOR)
        attempt.answer.set_result(Delivered())
        await stage.subscriptions.add(Declared(name="new", target=OPS.target), by=OPERATOR)
        await stage.happen()
        await stage.targets.wait_for(2)

    assert [(each.subscription, each.cause) for each in stage.targets.attempts] == [
        ("ops", 0),
        ("new", 2),
    ]


async def test_a_target_is_made_once_until_its_subscription_changes(stage: Stage) -> None:
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        await stage.settled(delivered=2)
        made = stage.targets.made
        await stage.subscribe(a_subscription("ops", filter=Filter(vms=("vm*",))))
        await stage.happen()
        await stage.settled(delivered=3)
        same = stage.targets.made
        await stage.subscribe(a_subscription("ops", target=CHANGED))
        await stage.happen()
        await stage.settled(delivered=4)

    assert (made, same, stage.targets.made) == (1, 1, 2)


async def test_a_target_is_made_once_and_not_where_everything_else_waits(stage: Stage) -> None:
    """To compile a template takes some tenths of a second."""
    makers: list[int] = []

    def make(subscription: Subscription) -> Target:
        makers.append(threading.get_ident())
        return stage.targets(subscription)

    messenger = TargetMessenger(make)
    await asyncio.gather(*[messenger.deliver(a_message(), OPS) for _ in range(3)])

    [maker] = makers
    assert maker != threading.get_ident()


async def test_targets_of_subscriptions_that_were_removed_are_dropped(stage: Stage) -> None:
    messenger = TargetMessenger(stage.targets)
    for number in range(3 * MOST_SUBSCRIPTIONS):
        await messenger.deliver(a_message(), a_subscription(f"s{number}"))
    made = stage.targets.made

    await messenger.deliver(a_message(), a_subscription(f"s{number}"))
    same = stage.targets.made
    await messenger.deliver(a_message(), a_subscription("s0"))

    assert (made, same, stage.targets.made) == (made, made, made + 1)


CHANGED = a_subscription(target=type(OPS.target)(url="http://127.0.0.1:8/")).target
