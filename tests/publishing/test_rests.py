"""A target that fails, or asks for time, is left alone by all nodes, with all of its messages."""

import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from forewarned.publishing.retries import FAILURES_OF_DEAD
from forewarned.publishing.turn import CLAIM
from forewarned.service.subscriptions.model import DeliveryState, Message, Rest, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome, Refused
from tests.builders import DAY, MINUTE, NOON, OPERATOR, SECOND
from tests.publishing.stage import Attempt, Stage, a_stage, until
from tests.service.subscriptions.messages import a_subscription
from tests.storage.publishing_calls import queued

OPS, CHAT = a_subscription("ops"), a_subscription("chat")
BUSY = Later(reason="503 Service Unavailable")
ASKED = Later(reason="429 Too Many Requests", retry_after=10 * MINUTE)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """With a second subscription, whose deliveries show that a turn has been taken."""
    async with a_stage() as stage:
        await stage.subscribe(OPS, CHAT)
        yield stage


def ops(answer: Callable[[], Outcome | None]) -> Callable[[Message, Subscription], Outcome | None]:
    return lambda _, subscription: answer() if subscription.name == "ops" else Delivered()


def to_ops(stage: Stage) -> list[Attempt]:
    return [each for each in stage.targets.attempts if each.subscription == "ops"]


async def turns(stage: Stage) -> None:
    """So that what would be begun now has been begun."""
    before = (await stage.health("chat")).delivered
    for _ in range(2):
        before += 1
        await stage.happen("of-chat")
        await stage.settled("chat", delivered=before)


async def test_a_target_that_asks_for_time_gets_it_from_all_scopes(stage: Stage) -> None:
    stage.targets.script = ops(lambda: ASKED)
    async with stage.publisher():
        await stage.happen("scope0")
        await stage.settled(failed=1)
        for number in range(1, 5):
            await stage.happen(f"scope{number}")
        await stage.pass_time(10 * MINUTE - SECOND)
        await turns(stage)
        during = len(to_ops(stage))
        health = await stage.health()
        stage.targets.script = ops(lambda: None)
        await stage.pass_time(SECOND)
        await until(lambda: bool(stage.targets.open))
        await turns(stage)
        probes = stage.targets.open
        probes[0].answer.set_result(Delivered())
        await stage.settled(delivered=1)
        await turns(stage)
        then = len(stage.targets.open)

    assert during == 1
    assert health.rests_until == NOON + 10 * MINUTE
    assert len(probes) == 1
    assert then > 1
    assert (await stage.health()).rests_until is None


async def test_a_rest_holds_for_every_node(stage: Stage) -> None:
    stage.targets.script = ops(lambda: ASKED)
    async with stage.publisher("node-1"):
        await stage.happen("scope0")
        await stage.settled(failed=1)
    async with stage.publisher("node-2"):
        await stage.happen("scope1")
        await turns(stage)
        during = len(to_ops(stage))
        await stage.pass_time(10 * MINUTE)
        await stage.settled(failed=2)

    assert during == 1


async def test_after_a_rest_one_node_tries_and_another_takes_over_if_that_was_killed(
    stage: Stage,
) -> None:
    stage.targets.script = ops(lambda: ASKED)
    for number in range(3):
        await stage.happen(f"scope{number}")
    async with stage.publisher("node-1"):
        await stage.settled(failed=3)
    stage.targets.script = ops(lambda: None)
    await stage.pass_time(10 * MINUTE)
    # What a node that was killed leaves.
    await stage.engine.decide(
        lambda tx: tx.claim_deliveries({"ops": 1}, by="node-1", until=tx.real_now + CLAIM)
    )
    async with stage.publisher("node-2"):
        await turns(stage)
        during = stage.targets.open
        await stage.pass_time(CLAIM)
        await until(lambda: bool(stage.targets.open))
        await turns(stage)
        then = len(stage.targets.open)

    assert (during, then) == ([], 1)


async def test_what_ends_during_a_rest_neither_ends_nor_prolongs_it(stage: Stage) -> None:
    """It was begun before."""
    for number in range(4):
        await stage.happen(f"scope{number}")
    stage.targets.script = ops(lambda: None)
    async with stage.publisher():
        await stage.targets.wait_for(8)
        one, two, three, _ = stage.targets.open
        one.answer.set_result(ASKED)
        await stage.settled(failed=1)
        await stage.pass_time(MINUTE)
        two.answer.set_result(Delivered())
        three.answer.set_result(BUSY)
        await stage.settled(delivered=1, failed=2)
        await stage.happen("scope5")
        await turns(stage)

    assert (await stage.health()).rests_until == NOON + 10 * MINUTE
    assert len(to_ops(stage)) == 4


async def test_a_dead_target_is_tried_once_a_minute_however_many_scopes_there_are(
    stage: Stage,
) -> None:
    for number in range(40):
        await stage.happen(f"scope{number}")
    stage.targets.script = ops(lambda: BUSY)
    async with stage.publisher():
        await turns(stage)
        for _ in range(120):
            await stage.pass_time(5 * SECOND)
            await turns(stage)

    # Eight at once, one more that is alone, and then after 1, 2, 4 … 60 seconds.
    assert 8 + 9 < len(to_ops(stage)) <= 8 + 1 + 6 + 9


async def has_failed(stage: Stage, *, times: int, delivered: int = 0) -> None:
    """To `ops`, until just now."""
    await stage.engine.decide(
        lambda tx: tx.note_health(
            "ops", delivered=delivered, failed=times, error="503", rest=Rest(times, tx.real_now)
        )
    )


async def test_what_has_waited_for_a_dead_target_for_a_day_is_given_up_with_what_is_tried(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """One attempt a minute is too few for all scopes."""
    for number in range(40):
        await stage.happen(f"scope{number}")
    await stage.happen("scope1")
    await queued(stage.store)
    await stage.pass_time(DAY + SECOND)
    await stage.happen("scope1")
    await has_failed(stage, times=FAILURES_OF_DEAD - 1)
    stage.targets.script = ops(lambda: BUSY)
    with caplog.at_level(logging.WARNING):
        async with stage.publisher():
            await stage.settled(failed=FAILURES_OF_DEAD)
            await turns(stage)

    health = await stage.health()
    [left] = [
        each
        for each in await stage.deliveries(DeliveryState.PENDING)
        if (each.subscription, each.message.scope_id) == ("ops", "scope1")
    ]
    given_up = await stage.deliveries(DeliveryState.UNDELIVERED)
    [told] = [each for each in caplog.records if "keeps failing" in each.message]
    assert (health.undelivered, health.failed) == (41, FAILURES_OF_DEAD)
    assert {(each.last_error, each.due_at) for each in given_up} == {(BUSY.reason, None)}
    assert sorted(each.attempts for each in given_up) == [0] * 40 + [1]
    assert left.due_at is not None
    assert told.__dict__["messages"] == 41


@pytest.mark.parametrize(
    ("times", "delivered"), [(1, 0), (FAILURES_OF_DEAD - 2, 0), (FAILURES_OF_DEAD, 1)]
)
async def test_nothing_is_given_up_untried_if_its_target_may_have_been_well_within_the_day(
    stage: Stage, times: int, delivered: int
) -> None:
    """The server may have been down, or may have delivered others."""
    for number in range(40):
        await stage.happen(f"scope{number}")
    await queued(stage.store)
    await stage.pass_time(DAY + SECOND)
    await has_failed(stage, times=times, delivered=delivered)
    stage.targets.script = ops(lambda: BUSY)
    async with stage.publisher():
        await stage.settled(failed=times + 1)
        await turns(stage)

    assert (await stage.health()).undelivered == 0


async def test_one_message_that_always_fails_keeps_no_other_waiting(stage: Stage) -> None:
    stage.targets.script = lambda message, subscription: (
        BUSY if (message.scope_id, subscription.name) == ("bad", "ops") else Delivered()
    )
    async with stage.publisher():
        await stage.happen("bad")
        await stage.settled(failed=1)
        await stage.happen()
        await stage.settled(delivered=1)
        await stage.pass_time(SECOND)
        await stage.settled(failed=2)
        await stage.happen()
        await stage.settled(delivered=2)


async def test_a_target_that_refuses_messages_is_sent_the_next(stage: Stage) -> None:
    stage.targets.script = ops(lambda: Refused(reason="400 Bad Request"))
    for number in range(20):
        await stage.happen(f"scope{number}")
    async with stage.publisher():
        await stage.settled(failed=20)

    assert (await stage.health()).rests_until is None


@pytest.mark.parametrize("how", ["redelivered", "changed"])
async def test_an_operator_ends_a_rest(stage: Stage, how: str) -> None:
    stage.targets.script = ops(lambda: Later(reason="429", retry_after=DAY))
    async with stage.publisher():
        await stage.happen("scope0")
        await stage.settled(failed=1)
        await stage.happen("scope1")
        await stage.pass_time(timedelta(hours=2))
        await turns(stage)
        before = len(to_ops(stage))
        stage.targets.script = lambda *_: Delivered()
        if how == "redelivered":
            found = await stage.subscriptions.redeliver("ops", by=OPERATOR)
            assert found >= 2
        else:
            target = type(OPS.target)(url="http://127.0.0.1:8/")
            await stage.subscriptions.change("ops", target=target, by=OPERATOR)
        await stage.settled(delivered=2)

    assert before == 1
