"""A receiver that answers 410 is gone: its subscription is paused, and loses nothing."""

from collections.abc import AsyncIterator

import pytest

from forewarned.service.listings import HistoryFilter
from forewarned.service.subscriptions.model import SubscriptionState
from forewarned.service.subscriptions.outcomes import Delivered, Gone
from forewarned.service.subscriptions.targets import Webhook
from tests.builders import HOUR, MINUTE, OPERATOR, SECOND
from tests.publishing.stage import Stage, a_stage
from tests.service.subscriptions.messages import a_subscription

GONE = Gone(reason="410 Gone")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with a_stage() as stage:
        await stage.subscribe(a_subscription("ops"))
        yield stage


async def test_a_receiver_that_is_gone_is_left_alone_until_its_subscription_is_resumed(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes = iter([GONE])
    stage.targets.script = lambda *_: next(outcomes, Delivered())
    async with stage.publisher():
        await stage.happen()
        await stage.happen()
        await stage.settled(failed=1)
        await stage.pass_time(HOUR)
        left = await stage.subscriptions.show("ops")
        await stage.subscriptions.resume("ops", by=OPERATOR)
        await stage.settled(delivered=2, failed=1)

    assert left.subscription.state is SubscriptionState.PAUSED
    assert (left.health.last_error, left.health.pending) == ("410 Gone", 2)
    assert stage.targets.seen() == [0, 0, 1]
    wanted = HistoryFilter(action="subscription_paused")
    [row] = await stage.engine.ask(lambda snapshot: snapshot.history(wanted))
    assert (row.actor, row.cause) == ("publisher", "ops: 410 Gone")
    assert "a subscription was paused because its target is gone" in caplog.text


async def test_a_subscription_that_got_another_target_meanwhile_is_not_paused(stage: Stage) -> None:
    stage.targets.script = lambda *_: None
    async with stage.publisher():
        await stage.happen()
        await stage.targets.wait_for(1)
        [attempt] = stage.targets.open
        moved = Webhook(url="https://new.example.com/")
        await stage.subscriptions.change("ops", target=moved, by=OPERATOR)
        stage.targets.script = lambda *_: Delivered()
        attempt.answer.set_result(GONE)
        await stage.settled(failed=1)
        await stage.pass_time(MINUTE)
        await stage.settled(delivered=1, failed=1)

    left = await stage.subscriptions.show("ops")
    assert left.subscription.state is SubscriptionState.ACTIVE


async def test_a_receiver_that_is_found_to_be_gone_while_the_server_ends_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.targets.script = lambda *_: None
    publisher = stage.publisher(patience=10 * SECOND)
    await publisher.__aenter__()
    await stage.happen()
    [attempt] = await stage.targets.wait_for(1)
    attempt.answer.get_loop().call_later(0.05, attempt.answer.set_result, GONE)

    await publisher.__aexit__()

    left = await stage.subscriptions.show("ops")
    assert left.subscription.state is SubscriptionState.PAUSED
    assert "a subscription was paused because its target is gone" in caplog.text
