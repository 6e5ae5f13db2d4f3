"""Subscriptions as operators and the settings file keep them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.errors import RefusalError
from forewarned.core.model import Actor
from forewarned.service.engine import Engine
from forewarned.service.listings import HistoryFilter
from forewarned.service.subscriptions.errors import (
    BadSubscriptionNameError,
    SecretInFileError,
    SecretReplacedError,
    SubscriptionExistsError,
    SubscriptionOfSettingsError,
    TooManySubscriptionsError,
    UnknownSubscriptionError,
)
from forewarned.service.subscriptions.model import (
    DeliveryFilter,
    Filter,
    Health,
    Message,
    Origin,
    PublishedStatus,
    Subscription,
    SubscriptionState,
)
from forewarned.service.subscriptions.outcomes import Delivered, Outcome
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.subscriptions import MOST, Declared, Subscriptions
from forewarned.service.subscriptions.targets import Apprise, Webhook
from tests.bases import a_store
from tests.builders import NOON, OPERATOR

SETTINGS = Actor(name="settings")
HOOK = Webhook(url="http://127.0.0.1:9/")
SIGNED = replace(HOOK, secrets=("whsec_mine",))
CHAT = Apprise(url="json://127.0.0.1/")
NARROW = Filter(vms=("web-*",))


@dataclass
class Postbox:
    """Takes everything."""

    sent: list[tuple[Message, Subscription]] = field(default_factory=list)

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome:
        self.sent.append((message, subscription))
        return Delivered()


@dataclass
class Desk:
    use_cases: Subscriptions
    engine: Engine
    postbox: Postbox

    async def names(self) -> list[str]:
        return [view.subscription.name for view in await self.use_cases.show_all()]

    async def history(self) -> list[tuple[str, str]]:
        rows = await self.engine.ask(lambda snapshot: snapshot.history(HistoryFilter()))
        return [(row.action, row.cause) for row in reversed(rows)]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock = VirtualClock(NOON, speed=0)
    async with a_store(clock, wall_clock=clock.now) as store:
        engine, postbox = Engine(store), Postbox()
        secrets = count(1)
        use_cases = Subscriptions(
            engine,
            postbox,
            real_now=clock.now,
            new_id=lambda: "id",
            new_secret=lambda: f"whsec_{next(secrets)}",
        )
        yield Desk(use_cases, engine, postbox)


async def test_a_subscription_is_added_with_a_secret_and_in_good_health(desk: Desk) -> None:
    added = await desk.use_cases.add(Declared(name="ops", target=HOOK, filter=NARROW), by=OPERATOR)

    view = await desk.use_cases.show("ops")
    assert (view.subscription, view.health) == (added, Health())
    assert added == Subscription(
        name="ops",
        target=replace(HOOK, secrets=("whsec_1",)),
        filter=NARROW,
        created_at=NOON,
    )
    assert await desk.history() == [("subscription_added", "ops")]


async def test_a_secret_that_is_given_is_kept(desk: Desk) -> None:
    one = await desk.use_cases.add(Declared(name="a", target=SIGNED), by=OPERATOR)
    other = await desk.use_cases.add(
        Declared(name="b", target=replace(HOOK, secret_file="/s")), by=OPERATOR
    )

    assert one.target == SIGNED
    assert other.target == replace(HOOK, secret_file="/s")


async def test_a_name_is_used_once_and_is_a_name(desk: Desk) -> None:
    await desk.use_cases.add(Declared(name="ops", target=HOOK), by=OPERATOR)

    with pytest.raises(SubscriptionExistsError):
        await desk.use_cases.add(Declared(name="ops", target=HOOK), by=OPERATOR)
    for name in ("", "Ops", "-ops", "o ps", "a" * 64, "a/b"):
        with pytest.raises(BadSubscriptionNameError):
            await desk.use_cases.add(Declared(name=name, target=HOOK), by=OPERATOR)


async def test_there_may_be_so_many_and_no_more(desk: Desk) -> None:
    declared = [Declared(name=f"s{number}", target=SIGNED) for number in range(MOST)]
    await desk.use_cases.keep(declared, by=SETTINGS)

    with pytest.raises(TooManySubscriptionsError):
        await desk.use_cases.add(Declared(name="more", target=HOOK), by=OPERATOR)


async def test_what_is_changed_changes_and_the_rest_stays(desk: Desk) -> None:
    added = await desk.use_cases.add(Declared(name="ops", target=SIGNED), by=OPERATOR)
    shape = Shape(name=ShapeName.EVENT_GRID)

    changed = await desk.use_cases.change(
        "ops", target=replace(HOOK, url="http://127.0.0.1:8/"), by=OPERATOR
    )
    again = await desk.use_cases.change("ops", shape=shape, filter=NARROW, by=OPERATOR)
    await desk.use_cases.change("ops", by=OPERATOR)

    assert changed == replace(added, target=replace(SIGNED, url="http://127.0.0.1:8/"))
    assert again == replace(changed, shape=shape, filter=NARROW)
    assert [action for action, _ in await desk.history()] == [
        "subscription_added",
        "subscription_changed",
        "subscription_changed",
    ]


async def test_a_secret_is_replaced_and_the_last_one_holds_for_a_while(desk: Desk) -> None:
    await desk.use_cases.add(Declared(name="ops", target=SIGNED), by=OPERATOR)
    await desk.use_cases.add(Declared(name="chat", target=CHAT), by=OPERATOR)

    first = await desk.use_cases.replace_secret("ops", by=OPERATOR)
    second = await desk.use_cases.replace_secret("ops", by=OPERATOR)

    assert isinstance(first.target, Webhook)
    assert isinstance(second.target, Webhook)
    assert first.target.secrets[1] == "whsec_mine"
    assert second.target.secrets[1] == first.target.secrets[0]
    with pytest.raises(SecretInFileError):
        await desk.use_cases.replace_secret("chat", by=OPERATOR)


async def test_a_secret_is_not_replaced_instead_of_another(desk: Desk) -> None:
    """Or a request that comes twice would end the secret that the receiver knows."""
    await desk.use_cases.add(Declared(name="ops", target=SIGNED), by=OPERATOR)

    first = await desk.use_cases.replace_secret("ops", instead_of="whsec_mine", by=OPERATOR)
    with pytest.raises(SecretReplacedError):
        await desk.use_cases.replace_secret("ops", instead_of="whsec_mine", by=OPERATOR)

    assert (await desk.use_cases.show("ops")).subscription == first


async def test_a_subscription_can_be_paused_resumed_and_removed(desk: Desk) -> None:
    await desk.use_cases.add(Declared(name="ops", target=SIGNED), by=OPERATOR)

    paused = await desk.use_cases.pause("ops", by=OPERATOR)
    await desk.use_cases.pause("ops", by=OPERATOR)
    resumed = await desk.use_cases.resume("ops", by=OPERATOR)
    await desk.use_cases.remove("ops", by=OPERATOR)

    assert (paused.state, resumed.state) == (SubscriptionState.PAUSED, SubscriptionState.ACTIVE)
    assert await desk.names() == []
    assert [action for action, _ in await desk.history()] == [
        "subscription_added",
        "subscription_paused",
        "subscription_resumed",
        "subscription_removed",
    ]


async def test_what_there_is_not_is_refused(desk: Desk) -> None:
    use_cases = desk.use_cases
    refused = [
        use_cases.show("ops"),
        use_cases.change("ops", by=OPERATOR),
        use_cases.replace_secret("ops", by=OPERATOR),
        use_cases.remove("ops", by=OPERATOR),
        use_cases.pause("ops", by=OPERATOR),
        use_cases.resume("ops", by=OPERATOR),
        use_cases.redeliver("ops", by=OPERATOR),
        use_cases.test("ops", by=OPERATOR),
        use_cases.deliveries(DeliveryFilter(subscription="ops")),
    ]

    for each in refused:
        with pytest.raises(UnknownSubscriptionError):
            await each
    assert await desk.history() == []


async def test_a_test_sends_one_message_that_says_it_is_a_test(desk: Desk) -> None:
    added = await desk.use_cases.add(Declared(name="ops", target=SIGNED), by=OPERATOR)

    outcome = await desk.use_cases.test("ops", by=OPERATOR)

    [(message, subscription)] = desk.postbox.sent
    assert outcome == Delivered()
    assert subscription == added
    assert (message.status, message.scope_id) == (PublishedStatus.SCHEDULED, "test")
    assert "test of the subscription ops" in message.event.description
    assert (await desk.use_cases.show("ops")).health == Health()


async def test_the_settings_add_change_and_remove_their_own_and_leave_the_others(
    desk: Desk,
) -> None:
    await desk.use_cases.add(Declared(name="mine", target=SIGNED), by=OPERATOR)
    await desk.use_cases.keep(
        [Declared(name="ops", target=HOOK), Declared(name="old", target=CHAT)], by=SETTINGS
    )
    [kept, _] = [view.subscription for view in await desk.use_cases.show_all()][1:]
    await desk.use_cases.pause("ops", by=OPERATOR)

    await desk.use_cases.keep([Declared(name="ops", target=HOOK, filter=NARROW)], by=SETTINGS)

    assert kept.name == "old"
    assert await desk.names() == ["mine", "ops"]
    ops = (await desk.use_cases.show("ops")).subscription
    assert (ops.origin, ops.filter, ops.state) == (
        Origin.SETTINGS,
        NARROW,
        SubscriptionState.PAUSED,
    )
    await desk.use_cases.keep([], by=SETTINGS)
    assert await desk.names() == ["mine"]


async def test_the_same_settings_change_nothing(desk: Desk) -> None:
    """A secret that was made for a webhook of the settings is not made again."""
    await desk.use_cases.keep([Declared(name="ops", target=HOOK)], by=SETTINGS)
    before = await desk.use_cases.show_all()

    await desk.use_cases.keep([Declared(name="ops", target=HOOK)], by=SETTINGS)

    assert await desk.use_cases.show_all() == before
    assert await desk.history() == [("subscription_added", "ops")]


async def test_one_of_the_settings_is_changed_there_alone(desk: Desk) -> None:
    await desk.use_cases.keep([Declared(name="ops", target=HOOK)], by=SETTINGS)
    use_cases = desk.use_cases

    refused: list[type[RefusalError]] = []
    for attempt in (
        use_cases.change("ops", filter=NARROW, by=OPERATOR),
        use_cases.replace_secret("ops", by=OPERATOR),
        use_cases.remove("ops", by=OPERATOR),
    ):
        with pytest.raises(SubscriptionOfSettingsError) as error:
            await attempt
        refused.append(error.type)

    assert len(refused) == 3
    assert await desk.names() == ["ops"]


async def test_nothing_to_deliver_again_is_no_error(desk: Desk) -> None:
    await desk.use_cases.add(Declared(name="ops", target=SIGNED), by=OPERATOR)

    assert await desk.use_cases.redeliver("ops", by=OPERATOR) == 0
    assert await desk.history() == [("subscription_added", "ops")]
