"""Messages and subscriptions for tests: each builder names only what matters to the test."""

from collections.abc import Iterable
from datetime import datetime

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Event, Publishing
from forewarned.service.subscriptions.model import (
    Filter,
    Message,
    PublishedStatus,
    Subscription,
    SubscriptionState,
)
from forewarned.service.subscriptions.shapes import Shape
from forewarned.service.subscriptions.targets import TargetSpec, Webhook
from tests.builders import NOON, an_event


def a_message(
    status: PublishedStatus = PublishedStatus.SCHEDULED,
    *,
    number: int = 1,
    event: Event | None = None,
    scope_id: str = "scope1",
    at: datetime = NOON,
    vms: Iterable[str] | None = None,
    publishing: Publishing = Publishing(),  # noqa: B008  # frozen
    cause: str = "",
) -> Message:
    event = event or an_event()
    return Message(
        number=number,
        status=status,
        at=at,
        scope_id=ScopeId(scope_id),
        event=event,
        vms=event.resources if vms is None else tuple(map(ResourceName, vms)),
        actor="operator",
        cause=cause,
        publishing=publishing,
    )


def a_subscription(
    name: str = "ops",
    *,
    target: TargetSpec = Webhook(url="http://127.0.0.1:9/"),  # noqa: B008  # frozen
    shape: Shape = Shape(),  # noqa: B008  # frozen
    filter: Filter = Filter(),  # noqa: B008  # frozen
    state: SubscriptionState = SubscriptionState.ACTIVE,
) -> Subscription:
    return Subscription(
        name=name, target=target, shape=shape, filter=filter, state=state, created_at=NOON
    )
