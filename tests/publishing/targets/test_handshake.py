"""Event Grid's handshake: no event is sent before a webhook has confirmed that it wants them."""

import asyncio
from datetime import timedelta

import pytest

from forewarned.publishing.targets.webhook import WebhookTarget
from forewarned.service.subscriptions.model import Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Gone, Later
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.targets import Webhook
from forewarned.targets.addresses import Reach
from forewarned.targets.signatures import new_secret
from tests.publishing.receiver import Received, Receiver, Reply, receiving
from tests.service.subscriptions.messages import a_message, a_subscription

SECRET = new_secret(b"n" * 32)


def a_target(receiver: Receiver) -> tuple[WebhookTarget, Subscription]:
    hook = Webhook(url=receiver.url, secrets=(SECRET,))
    shape = Shape(name=ShapeName.EVENT_GRID)
    subscription = a_subscription(target=hook, shape=shape)
    return WebhookTarget(subscription, hook, reach=Reach.LOOPBACK), subscription


def confirming(received: Received) -> Reply:
    (event,) = received.json
    if event["eventType"] != "Microsoft.EventGrid.SubscriptionValidationEvent":
        return Reply()
    code = event["data"]["validationCode"]
    return Reply(body=f'{{"validationResponse": "{code}"}}'.encode())


async def test_a_webhook_of_event_grid_is_asked_before_it_is_sent_events() -> None:
    async with receiving(confirming) as receiver:
        target, subscription = a_target(receiver)
        outcomes = await asyncio.gather(
            *(target.deliver(a_message(number=each), subscription) for each in range(3))
        )

    kinds = [received.headers["aeg-event-type"] for received in receiver.received]
    assert outcomes == [Delivered()] * 3
    assert kinds == ["SubscriptionValidation", *["Notification"] * 3]
    for received in receiver.received:
        received.verified(SECRET)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(), "did not confirm Event Grid's validation event: expected 200 and"),
        (Reply(body=b'{"validationResponse": "x"}'), "did not confirm Event Grid's validation"),
        (Reply(body=b"[]"), "did not confirm Event Grid's validation event"),
        (Reply(status=404, body=b"what?"), "answered 404 to Event Grid's validation event"),
        (Reply(status=202), "answered 202 to Event Grid's validation event"),
    ],
)
async def test_a_webhook_that_does_not_confirm_is_sent_nothing_and_asked_again(
    reply: Reply, why: str
) -> None:
    replies = [reply]

    def answer(received: Received) -> Reply:
        return replies.pop(0) if replies else confirming(received)

    async with receiving(answer) as receiver:
        target, subscription = a_target(receiver)
        refused = await target.deliver(a_message(), subscription)
        sent = len(receiver.received)
        later = await target.deliver(a_message(), subscription)

    assert isinstance(refused, Later)
    assert why in refused.reason
    assert sent == 1
    assert later == Delivered()
    assert len(receiver.received) == 3


async def test_a_webhook_that_asks_for_time_when_it_is_to_confirm_gets_it() -> None:
    """And those who waited for its answer don't ask at once again."""
    reply = Reply(status=429, headers={"Retry-After": "600"}, body=b"slow down")
    async with receiving(lambda _: reply) as receiver:
        target, subscription = a_target(receiver)
        outcomes = await asyncio.gather(
            *(target.deliver(a_message(number=each), subscription) for each in range(8))
        )

    assert len(receiver.received) == 1
    for outcome in outcomes:
        assert isinstance(outcome, Later)
        assert outcome.retry_after == timedelta(minutes=10)
        assert "answered 429 to Event Grid's validation event" in outcome.reason


async def test_a_webhook_may_be_gone_when_it_is_to_confirm() -> None:
    async with receiving(lambda _: Reply(status=410, body=b"moved away")) as receiver:
        target, subscription = a_target(receiver)
        outcome = await target.deliver(a_message(), subscription)

    assert isinstance(outcome, Gone)
    assert "answered 410 to Event Grid's validation event" in outcome.reason
    assert outcome.reason.endswith("moved away")


async def test_a_webhook_that_was_not_reached_is_asked_by_the_next() -> None:
    replies = [Reply(resets=True)]

    def answer(received: Received) -> Reply:
        return replies.pop(0) if replies else confirming(received)

    async with receiving(answer) as receiver:
        target, subscription = a_target(receiver)
        first, second = await asyncio.gather(
            *(target.deliver(a_message(number=each), subscription) for each in range(2))
        )

    assert isinstance(first, Later)
    assert second == Delivered()
