"""Subscriptions, their health and deliveries, to and from the rows of a database."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryState,
    Filter,
    Health,
    Origin,
    Rest,
    Subscription,
    SubscriptionState,
)
from forewarned.service.subscriptions.shapes import Shape
from forewarned.service.subscriptions.targets import Apprise, TargetSpec, Webhook
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.rows import FoundRow, to_instant, to_json

_TARGETS: Final[Mapping[str, msgspec.json.Decoder[Webhook] | msgspec.json.Decoder[Apprise]]] = {
    Webhook.kind: msgspec.json.Decoder(Webhook),
    Apprise.kind: msgspec.json.Decoder(Apprise),
}


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    target: msgspec.Raw
    shape: Shape
    filter: Filter
    state: SubscriptionState
    origin: Origin
    created_at: datetime


_document: Final = msgspec.json.Decoder(_Document)


def from_subscription(subscription: Subscription) -> str:
    return to_json(
        {
            "kind": subscription.target.kind,
            "target": subscription.target,
            "shape": subscription.shape,
            "filter": subscription.filter,
            "state": subscription.state,
            "origin": subscription.origin,
            "created_at": subscription.created_at,
        }
    )


def to_subscription(row: FoundRow) -> Subscription:
    document = _document.decode(row["document"])
    return Subscription(
        name=row["name"],
        target=_to_target(document),
        shape=document.shape,
        filter=document.filter,
        state=document.state,
        origin=document.origin,
        created_at=document.created_at,
    )


def _to_target(document: _Document) -> TargetSpec:
    return _TARGETS[document.kind].decode(document.target)


def to_health(
    row: FoundRow, *, pending: FoundRow | None, undelivered: FoundRow | None, now: datetime
) -> Health:
    delivered_at, failed_at = row["last_delivered_at"], row["last_failed_at"]
    rest = to_rest(row) if row["rests"] else None
    return Health(
        delivered=row["delivered"],
        last_delivered_at=None if delivered_at is None else to_instant(delivered_at),
        failed=row["failed"],
        failures=row["failures"],
        last_failed_at=None if failed_at is None else to_instant(failed_at),
        last_error=row["last_error"],
        pending=0 if pending is None else pending["number"],
        undelivered=0 if undelivered is None else undelivered["number"],
        lag=timedelta(0)
        if pending is None
        else max(now - to_instant(pending["oldest"]), timedelta(0)),
        rests_until=rest.until if rest is not None and rest.holds(now) else None,
        removed=row["removed"],
    )


def to_rest(row: FoundRow) -> Rest:
    """Of a subscription that has rested."""
    return Rest(row["rests"], to_instant(row["rests_until"]))


def to_delivery(row: FoundRow) -> Delivery:
    tried_at, due_at, given_up_at = row["tried_at"], row["due_at"], row["given_up_at"]
    return Delivery(
        subscription=row["subscription"],
        message=outbox.to_message(row),
        state=DeliveryState(row["state"]),
        attempts=row["attempts"],
        queued_at=to_instant(row["queued_at"]),
        tried_at=None if tried_at is None else to_instant(tried_at),
        due_at=None if due_at is None else to_instant(due_at),
        given_up_at=None if given_up_at is None else to_instant(given_up_at),
        last_error=row["last_error"],
    )
