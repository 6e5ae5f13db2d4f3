"""Subscriptions and their deliveries as people read them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from forewarned.cli.tables import frameless
from forewarned.cli.wording import TYPE_STYLES, ago, ahead, count, listing, plain, span
from forewarned.control.v1.subscriptions.wire import (
    AddedSubscription,
    ShownDelivery,
    ShownHealth,
    ShownSubscription,
)
from forewarned.service.subscriptions.condition import Condition
from forewarned.service.subscriptions.model import DeliveryState, SubscriptionState
from forewarned.service.subscriptions.shapes import ShapeName

_STYLES: Final = {
    Condition.HEALTHY: "green",
    Condition.FAILING: "bold red",
    Condition.PAUSED: "yellow",
}


def list_page(found: Sequence[ShownSubscription], *, now: datetime) -> Iterator[RenderableType]:
    if not found:
        yield "no subscriptions: 'forewarned subscription add NAME URL' adds one"
        return
    table = frameless("Name", "Health", "Target", "Delivered", "Pending", "Undelivered")
    for each in found:
        table.add_row(
            plain(each.name),
            _health_words(each, now=now),
            plain(each.target.place),
            f"{each.health.delivered:,}",
            f"{each.health.pending:,}",
            Text(f"{each.health.undelivered:,}", "red" if each.health.undelivered else ""),
        )
    yield table


def show_page(
    found: ShownSubscription, deliveries: Sequence[ShownDelivery], *, now: datetime
) -> Iterator[RenderableType]:
    health = found.health
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for label, words in (
        ("Subscription", Text.assemble(plain(found.name), "  ", _health_words(found, now=now))),
        ("Target", _target_words(found)),
        ("Shape", _shape_words(found)),
        ("Messages", filter_words(found)),
        ("Managed by", "the settings file" if found.origin == "settings" else "operators"),
        ("Delivered", _delivered_words(health, now=now)),
        ("Failed", _failed_words(health, now=now)),
        ("Pending", _pending_words(health, now=now)),
        ("Undelivered", f"{health.undelivered:,}"),
    ):
        table.add_row(Text(label, "bold"), words)
    yield table
    if deliveries:
        yield ""
        yield from delivery_page(deliveries, now=now)
    if health.undelivered:
        yield ""
        yield f"To try them again:  forewarned subscription redeliver {plain(found.name)}"


def delivery_page(
    found: Sequence[ShownDelivery], *, now: datetime, state: str | None = None
) -> Iterator[RenderableType]:
    """`state` is the only one that was asked for."""
    if not found:
        yield f"no {state or 'pending or undelivered'} messages"
        return
    table = frameless("Number", "Message", "VMs", "Tries", "State", "Error")
    for each in found:
        table.add_row(
            str(each.number),
            Text.assemble(
                (each.event_type, TYPE_STYLES.get(each.event_type, "")), f" {each.status}"
            ),
            listing(each.vms),
            str(each.attempts),
            _delivery_words(each, now=now),
            plain(each.error),
        )
    yield table


def added_page(added: AddedSubscription, verb: str = "added") -> Iterator[RenderableType]:
    found = added.subscription
    what = f"{filter_words(found)}, as {_shape_words(found)}, to {found.target.place}"
    yield plain(f"{verb} {found.name}: {what}")
    if added.secret is not None:
        yield from _secret_lines(added.secret)
    yield ""
    yield f"To try it:  forewarned subscription test {plain(found.name)}"


def rotated_page(added: AddedSubscription) -> Iterator[RenderableType]:
    found = added.subscription
    yield plain(f"messages to {found.name} are signed with {count(found.target.secrets, 'secret')}")
    yield from _secret_lines(added.secret or "")


def _secret_lines(secret: str) -> Iterator[RenderableType]:
    yield ""
    # Alone on its line, so that it can be copied.
    yield secret
    yield ""
    yield "Give this secret to the receiver. It won't be shown again."
    yield (
        "How to verify messages with it: the documentation's page 'Send events elsewhere'"
        " (docs/publishing.md)"
    )


def state_page(found: ShownSubscription) -> Iterator[RenderableType]:
    if found.state is SubscriptionState.PAUSED:
        yield f"{plain(found.name)} is paused: messages are kept for a limited time"
    else:
        waiting = count(found.health.pending, "message")
        yield f"{plain(found.name)} is active, with {waiting} to deliver"


def filter_words(found: ShownSubscription) -> str:
    wanted = found.filter
    parts = [
        ("types", wanted.types),
        ("statuses", wanted.statuses),
        ("sources", wanted.sources),
        ("scopes", wanted.scopes),
        ("VMs", wanted.vms),
    ]
    words = [f"{name} {listing(values)}" for name, values in parts if values]
    return "; ".join(words) or "all messages"


def _shape_words(found: ShownSubscription) -> str:
    # People are sent a few lines of text, unless there is a template.
    is_text = found.target.kind == "apprise" and found.shape.kind == ShapeName.CLOUDEVENTS
    return "text" if is_text else plain(found.shape.kind)


def _health_words(found: ShownSubscription, *, now: datetime) -> Text:
    words, health = str(found.condition), found.health
    if found.condition is Condition.HEALTHY and health.last_delivered_at is not None:
        words += f", last delivery {ago(health.last_delivered_at, now)}"
    if found.condition is Condition.FAILING and health.pending:
        words += f", behind by {span(health.lag.length)}"
    return Text(words, _STYLES.get(found.condition, ""))


def _target_words(found: ShownSubscription) -> str:
    target = found.target
    words = f"{target.kind} at {target.place}"
    if target.secret_file is not None:
        words += f", signed with the secrets in {target.secret_file}"
    elif target.secrets:
        words += f", signed with {count(target.secrets, 'secret')}"
    return plain(words)


def _delivered_words(health: ShownHealth, *, now: datetime) -> str:
    if health.last_delivered_at is None:
        return "nothing yet"
    return f"{health.delivered:,}, last {ago(health.last_delivered_at, now)}"


def _failed_words(health: ShownHealth, *, now: datetime) -> str:
    if health.last_failed_at is None:
        return "none"
    words = f"{count(health.failed, 'attempt')}, last {ago(health.last_failed_at, now)}"
    return plain(f"{words}: {health.last_error}")


def _pending_words(health: ShownHealth, *, now: datetime) -> str:
    if not health.pending:
        return "0"
    words = f"{health.pending:,}, the oldest for {span(health.lag.length)}"
    if health.rests_until is not None:
        words += f"; the next attempt is {ahead(health.rests_until, now)}"
    return words


def _delivery_words(each: ShownDelivery, *, now: datetime) -> Text:
    if each.state is DeliveryState.UNDELIVERED:
        when = "" if each.given_up_at is None else f", {ago(each.given_up_at, now)}"
        return Text(f"given up{when}", "red")
    if each.due_at is None:
        return Text("queued")
    return Text("due" if each.due_at <= now else f"retry {ahead(each.due_at, now)}")
