"""The operations of `/v1/subscriptions`."""

import asyncio

from forewarned.control.http.operations import Asked
from forewarned.control.v1.request_wire import Nothing
from forewarned.control.v1.services import Services
from forewarned.control.v1.subscriptions import requests, wire
from forewarned.security.identities import Role
from forewarned.service.subscriptions.outcomes import Delivered
from forewarned.service.subscriptions.subscriptions import Subscriptions
from forewarned.service.subscriptions.targets import Webhook


async def add_subscription(
    services: Services, asked: Asked[requests.AddSubscription, Nothing]
) -> wire.AddedSubscription:
    """Send messages about events to a target, from now on."""
    # In a thread, here and below: to compile and try a template takes too long for the event loop.
    wanted = await asyncio.to_thread(asked.body.declared)
    added = await _of(services).add(wanted, by=asked.by)
    return wire.added(await _of(services).show(added.name), wire.new_secret(added, wanted.target))


async def list_subscriptions(
    services: Services, asked: Asked[Nothing, Nothing]
) -> wire.SubscriptionList:
    """Who is told of events, and how the deliveries are going."""
    found = [wire.shown(view) for view in await _of(services).show_all()]
    if not await asked.may(Role.MAINTAINER):
        found = [wire.without_template(each) for each in found]
    return wire.SubscriptionList(subscriptions=tuple(found))


async def show_subscription(
    services: Services, asked: Asked[Nothing, Nothing]
) -> wire.ShownSubscription:
    """One subscription, and how its deliveries are going."""
    found = wire.shown(await _of(services).show(asked.path["name"]))
    return found if await asked.may(Role.MAINTAINER) else wire.without_template(found)


async def change_subscription(
    services: Services, asked: Asked[requests.ChangeSubscription, Nothing]
) -> wire.AddedSubscription:
    """Change parts of a subscription; pending messages are sent with the new settings."""
    name, body = asked.path["name"], asked.body
    former = (await _of(services).show(name)).subscription
    target = None if body.target is None else requests.checked_target(body.target)
    shape = None
    if body.shape is not None:
        shape = await asyncio.to_thread(requests.checked_shape, body.shape)
    requests.refuse_bad_pair(
        target or former.target,
        shape or former.shape,
        field="shape" if target is None else "target",
    )
    wanted = None if body.filter is None else body.filter.filter()
    changed = await _of(services).change(
        name, target=target, shape=shape, filter=wanted, by=asked.by
    )
    was_signed = isinstance(former.target, Webhook) and former.target.secrets
    secret = None if target is None or was_signed else wire.new_secret(changed, target)
    return wire.added(await _of(services).show(name), secret)


async def remove_subscription(
    services: Services, asked: Asked[Nothing, Nothing]
) -> wire.ShownSubscription:
    """Remove a subscription, and the messages that it has not delivered."""
    name = asked.path["name"]
    gone = await _of(services).show(name)
    await _of(services).remove(name, by=asked.by)
    return wire.shown(gone)


async def pause_subscription(
    services: Services, asked: Asked[Nothing, Nothing]
) -> wire.ShownSubscription:
    """Stop delivering, and keep messages until it is resumed."""
    name = asked.path["name"]
    await _of(services).pause(name, by=asked.by)
    return wire.shown(await _of(services).show(name))


async def resume_subscription(
    services: Services, asked: Asked[Nothing, Nothing]
) -> wire.ShownSubscription:
    """Resume delivering, starting with the messages that were kept."""
    name = asked.path["name"]
    await _of(services).resume(name, by=asked.by)
    return wire.shown(await _of(services).show(name))


async def rotate_secret(
    services: Services, asked: Asked[Nothing, Nothing]
) -> wire.AddedSubscription:
    """Sign messages with a new secret, and with the previous one until the next rotation."""
    name = asked.path["name"]
    changed = await _of(services).replace_secret(name, by=asked.by)
    return wire.added(await _of(services).show(name), wire.newest_secret(changed))


async def test_subscription(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Tested:
    """Send a test message now, and say whether it was delivered."""
    outcome = await _of(services).test(asked.path["name"], by=asked.by)
    if isinstance(outcome, Delivered):
        return wire.Tested(delivered=True, reason="")
    return wire.Tested(delivered=False, reason=outcome.reason)


async def redeliver(
    services: Services, asked: Asked[requests.Redeliver, Nothing]
) -> wire.Redelivered:
    """Retry undelivered messages, and those that wait for their next attempt, at once."""
    name, numbers = asked.path["name"], asked.body.numbers
    return wire.Redelivered(messages=await _of(services).redeliver(name, numbers, by=asked.by))


async def list_deliveries(
    services: Services, asked: Asked[Nothing, requests.DeliveriesQuery]
) -> wire.DeliveryList:
    """Pending and undelivered messages, the oldest first."""
    found = await _of(services).deliveries(asked.query.filter(asked.path["name"]))
    return wire.DeliveryList(deliveries=tuple(map(wire.shown_delivery, found)))


def _of(services: Services) -> Subscriptions:
    return services.use_cases.subscriptions
