"""Subscriptions: who is told of events, how the deliveries fare, and what can be done about it.

Invariant: nothing here shows a secret, or a URL that may hold one.
"""

from collections.abc import Awaitable
from typing import Final, Protocol
from urllib.parse import quote

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.core.model import Actor
from forewarned.service.subscriptions.condition import condition_of
from forewarned.service.subscriptions.errors import UnknownSubscriptionError
from forewarned.service.subscriptions.model import DeliveryFilter, DeliveryState
from forewarned.service.subscriptions.outcomes import Delivered

_MOST: Final = 50
"""Deliveries that a page lists of each state."""


class Decision(Protocol):
    def __call__(self, name: str, *, by: Actor) -> Awaitable[object]: ...


def path_of(name: str) -> str:
    return f"/subscriptions/{quote(name, safe='')}"


async def list_subscriptions(visit: Visit) -> Response:
    views = await visit.use_cases.subscriptions.show_all()
    rows = [(condition_of(each.subscription, each.health), each) for each in views]
    return visit.page("subscriptions.html", rows=rows)


async def show_subscription(visit: Visit) -> Response:
    return await _show(visit)


async def pause(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.subscriptions.pause, done="saved")


async def resume(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.subscriptions.resume, done="saved")


async def redeliver(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.subscriptions.redeliver, done="redelivered")


async def test(visit: Visit) -> Response:
    name = visit.named("name")
    try:
        outcome = await visit.use_cases.subscriptions.test(name, by=visit.by)
    except REFUSED as refusal:
        return await _show(visit, mistakes(refusal, frozenset()))
    if isinstance(outcome, Delivered):
        return see(f"{path_of(name)}?done=tested")
    return await _show(visit, {"": f"The test message was not delivered: {outcome.reason}"})


async def show_removal(visit: Visit) -> Response:
    name = visit.named("name")
    view = await visit.use_cases.subscriptions.show(name)
    return visit.page("subscription_remove.html", view=view)


async def remove(visit: Visit) -> Response:
    try:
        await visit.use_cases.subscriptions.remove(visit.named("name"), by=visit.by)
    except UnknownSubscriptionError:
        pass  # Sent twice, or someone else was faster: it is gone, as asked.
    except REFUSED as refusal:
        return await _show(visit, mistakes(refusal, frozenset()))
    return see("/subscriptions?done=removed")


async def _decide(visit: Visit, decision: Decision, *, done: str) -> Response:
    name = visit.named("name")
    try:
        await decision(name, by=visit.by)
    except REFUSED as refusal:
        return await _show(visit, mistakes(refusal, frozenset()))
    return see(f"{path_of(name)}?done={done}")


async def _show(visit: Visit, errors: dict[str, str] | None = None) -> Response:
    """Raises UnknownSubscriptionError."""
    name = visit.named("name")
    view = await visit.use_cases.subscriptions.show(name)
    wanted = [
        DeliveryFilter(subscription=name, state=state, limit=_MOST + 1)
        for state in (DeliveryState.UNDELIVERED, DeliveryState.PENDING)
    ]
    undelivered, pending = [await visit.use_cases.subscriptions.deliveries(each) for each in wanted]
    return visit.page(
        "subscription.html",
        errors=errors,
        view=view,
        condition=condition_of(view.subscription, view.health),
        undelivered=undelivered[:_MOST],
        pending=pending[:_MOST],
        has_more=len(undelivered) > _MOST or len(pending) > _MOST,
    )
