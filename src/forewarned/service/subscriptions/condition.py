"""How a subscription is, in one word, for lists."""

from enum import StrEnum

from forewarned.service.subscriptions.model import Health, Subscription, SubscriptionState


class Condition(StrEnum):
    WAITING = "waiting"
    """Nothing was delivered yet, and nothing has failed."""
    HEALTHY = "healthy"
    FAILING = "failing"
    """The last attempts failed. They go on, later and later, for a day."""
    PAUSED = "paused"


def condition_of(subscription: Subscription, health: Health) -> Condition:
    if subscription.state is SubscriptionState.PAUSED:
        return Condition.PAUSED
    if health.failures:
        return Condition.FAILING
    return Condition.WAITING if health.last_delivered_at is None else Condition.HEALTHY
