"""The JSON that `/v1/subscriptions` answers with.

No secret is in it, except one that was made just now. A template may contain one, so its text is
shown only to the role maintainer and above.
"""

from datetime import datetime
from typing import Annotated

from msgspec.structs import replace

from forewarned.control.v1.wire import Shape, Span, about
from forewarned.core.model import EventSource, EventType
from forewarned.service.subscriptions import model, shapes, targets
from forewarned.service.subscriptions.condition import Condition, condition_of
from forewarned.service.subscriptions.subscriptions import SubscriptionView


class ShownTarget(Shape, frozen=True):
    kind: Annotated[str, about("webhook or apprise")]
    place: Annotated[str, about("where messages go, without what may be a secret")]
    secrets: Annotated[
        int, about("how many secrets the store has for it; messages are signed with each of them")
    ]
    secret_file: Annotated[
        str | None,
        about("the file on the server that has the secrets instead; null if there is none"),
    ]


class ShownShape(Shape, frozen=True):
    kind: shapes.ShapeName
    template: Annotated[
        str, about("the text, for `template`; empty for callers below the role maintainer")
    ]
    template_length: Annotated[int, about("how many characters the text has")]
    content_type: Annotated[str, about("media type of the text, for `template`")]
    every_scope: Annotated[
        bool,
        about(
            "whether `event-grid` also publishes events of scopes whose policy does not ask for it"
        ),
    ]


class ShownFilter(Shape, frozen=True):
    """Which messages are sent. An empty field matches all."""

    types: tuple[EventType, ...]
    statuses: tuple[model.PublishedStatus, ...]
    sources: tuple[EventSource, ...]
    scopes: tuple[str, ...]
    vms: tuple[str, ...]


class ShownHealth(Shape, frozen=True):
    """How the deliveries are going. All times are real time, never an emulator's clock."""

    delivered: int
    last_delivered_at: Annotated[datetime | None, about("null if nothing has been delivered yet")]
    failed: Annotated[int, about("failed attempts, in total")]
    failures: Annotated[int, about("failed attempts since the last delivery")]
    last_failed_at: datetime | None
    last_error: Annotated[str, about("why the last failed attempt failed")]
    pending: Annotated[int, about("messages that are to be delivered")]
    undelivered: Annotated[int, about("messages that the server has given up on, and keeps")]
    lag: Annotated[Span, about("how long the oldest pending message has been waiting")]
    rests_until: Annotated[
        datetime | None,
        about("no message is sent before this time; null if the subscription is not resting"),
    ] = None


class ShownSubscription(Shape, frozen=True):
    name: str
    state: model.SubscriptionState
    condition: Annotated[Condition, about("state and health in one word")]
    origin: Annotated[
        model.Origin, about("what manages it: the settings file, or operators through this API")
    ]
    target: ShownTarget
    shape: ShownShape
    filter: ShownFilter
    created_at: datetime
    health: ShownHealth


class SubscriptionList(Shape, frozen=True):
    subscriptions: tuple[ShownSubscription, ...]


class AddedSubscription(Shape, frozen=True):
    subscription: ShownSubscription
    secret: Annotated[
        str | None, about("the secret that was made for it, shown only this once; null if none was")
    ]


class ShownDelivery(Shape, frozen=True):
    """A message on its way, or given up. Messages that have arrived are not listed."""

    number: Annotated[int, about("number of the message, as `redeliver` expects it")]
    message_id: Annotated[str, about("the same for every attempt")]
    state: model.DeliveryState
    status: model.PublishedStatus
    at: Annotated[datetime, about("when it happened")]
    event_id: str
    event_type: EventType
    scope: str
    vms: tuple[str, ...]
    attempts: Annotated[int, about("how many attempts have failed")]
    queued_at: datetime
    due_at: Annotated[
        datetime | None,
        about(
            "the next attempt is not before this; null while an earlier message of its scope comes"
            " first, or if given up"
        ),
    ]
    given_up_at: datetime | None
    error: Annotated[str, about("why the last attempt failed")]


class DeliveryList(Shape, frozen=True):
    deliveries: tuple[ShownDelivery, ...]


class Redelivered(Shape, frozen=True):
    messages: Annotated[int, about("how many are due now")]


class Tested(Shape, frozen=True):
    delivered: bool
    reason: Annotated[str, about("why it was not delivered; empty if it was")]


def shown(view: SubscriptionView) -> ShownSubscription:
    subscription, health = view.subscription, view.health
    wanted = subscription.filter
    return ShownSubscription(
        name=subscription.name,
        state=subscription.state,
        condition=condition_of(subscription, health),
        origin=subscription.origin,
        target=_target(subscription.target),
        shape=ShownShape(
            kind=subscription.shape.name,
            template=subscription.shape.template,
            template_length=len(subscription.shape.template),
            content_type=subscription.shape.content_type,
            every_scope=subscription.shape.every_scope,
        ),
        filter=ShownFilter(
            types=tuple(sorted(wanted.types)),
            statuses=tuple(sorted(wanted.statuses)),
            sources=tuple(sorted(wanted.sources)),
            scopes=wanted.scopes,
            vms=wanted.vms,
        ),
        created_at=subscription.created_at,
        health=_health(health),
    )


def without_template(found: ShownSubscription) -> ShownSubscription:
    return replace(found, shape=replace(found.shape, template=""))


def added(view: SubscriptionView, secret: str | None) -> AddedSubscription:
    return AddedSubscription(subscription=shown(view), secret=secret)


def new_secret(made: model.Subscription, wanted: targets.TargetSpec) -> str | None:
    """What was made for a webhook that was declared without a secret; None if nothing was."""
    was_given = not isinstance(wanted, targets.Webhook) or wanted.secrets
    return None if was_given else newest_secret(made)


def newest_secret(made: model.Subscription) -> str | None:
    return made.target.secrets[0] if isinstance(made.target, targets.Webhook) else None


def _target(spec: targets.TargetSpec) -> ShownTarget:
    if isinstance(spec, targets.Apprise):
        return ShownTarget(kind=spec.kind, place=spec.place, secrets=0, secret_file=None)
    return ShownTarget(
        kind=spec.kind,
        place=spec.place,
        secrets=len(spec.secrets),
        secret_file=spec.secret_file or None,
    )


def _health(health: model.Health) -> ShownHealth:
    return ShownHealth(
        delivered=health.delivered,
        last_delivered_at=health.last_delivered_at,
        failed=health.failed,
        failures=health.failures,
        last_failed_at=health.last_failed_at,
        last_error=health.last_error,
        pending=health.pending,
        undelivered=health.undelivered,
        lag=Span(health.lag),
        rests_until=health.rests_until,
    )


def shown_delivery(delivery: model.Delivery) -> ShownDelivery:
    message = delivery.message
    return ShownDelivery(
        number=message.number,
        message_id=message.id,
        state=delivery.state,
        status=message.status,
        at=message.at,
        event_id=message.event.id,
        event_type=message.event.type,
        scope=message.scope_id,
        vms=message.vms,
        attempts=delivery.attempts,
        queued_at=delivery.queued_at,
        due_at=delivery.due_at,
        given_up_at=delivery.given_up_at,
        error=delivery.last_error,
    )
