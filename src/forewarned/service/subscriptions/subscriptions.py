"""The use cases of subscriptions: add one, look how it fares, try it, change it, and end it."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from forewarned.core.copying import replace
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import Actor
from forewarned.service.engine import Engine
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.subscriptions.content import samples
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
    Delivery,
    DeliveryFilter,
    Filter,
    Health,
    Message,
    Origin,
    Subscription,
    SubscriptionState,
)
from forewarned.service.subscriptions.outcomes import Outcome
from forewarned.service.subscriptions.ports import Messenger
from forewarned.service.subscriptions.shapes import Shape
from forewarned.service.subscriptions.targets import TargetSpec, Webhook

MOST: Final = 100
"""Subscriptions. The publisher reads all of them each time it looks."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is said of a subscription where it is declared."""

    name: str
    target: TargetSpec
    shape: Shape = Shape()  # noqa: RUF009  # frozen
    filter: Filter = Filter()  # noqa: RUF009  # as above


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionView:
    subscription: Subscription
    health: Health


class Subscriptions:
    def __init__(
        self,
        engine: Engine,
        messenger: Messenger,
        *,
        real_now: Callable[[], datetime],
        new_id: Callable[[], str],
        new_secret: Callable[[], str],
    ) -> None:
        """`new_secret` makes what messages are signed with, `whsec_…`."""
        self._engine = engine
        self._messenger = messenger
        self._real_now = real_now
        self._new_id = new_id
        self._new_secret = new_secret

    async def show_all(self) -> list[SubscriptionView]:
        """In order of name."""
        return await self._engine.ask(self._views)

    async def show(self, name: str) -> SubscriptionView:
        """Raises UnknownSubscriptionError."""

        def question(snapshot: Snapshot) -> SubscriptionView:
            _found(snapshot, name)
            return next(view for view in self._views(snapshot) if view.subscription.name == name)

        return await self._engine.ask(question)

    async def deliveries(self, wanted: DeliveryFilter) -> list[Delivery]:
        """What is pending, and what is kept as undelivered. Raises UnknownSubscriptionError."""

        def question(snapshot: Snapshot) -> list[Delivery]:
            if wanted.subscription is not None:
                _found(snapshot, wanted.subscription)
            return snapshot.deliveries(wanted)

        return await self._engine.ask(question)

    async def add(self, declared: Declared, *, by: Actor) -> Subscription:
        """With a new secret, if its webhook is given none.

        Raises BadSubscriptionNameError, SubscriptionExistsError, TooManySubscriptionsError.
        """
        refuse_bad_name(declared.name)
        secret = self._new_secret()

        def decision(tx: Transaction) -> Subscription:
            tx.lock_publishing()
            if tx.subscription(declared.name) is not None:
                raise SubscriptionExistsError(declared.name)
            return _added(tx, declared, Origin.OPERATOR, secret=secret, by=by)

        return await self._engine.decide(decision)

    async def change(
        self,
        name: str,
        *,
        target: TargetSpec | None = None,
        shape: Shape | None = None,
        filter: Filter | None = None,
        by: Actor,
    ) -> Subscription:
        """None leaves a part as it is. A webhook without secrets keeps those that it has.

        What is pending already is delivered to the new target.
        Raises UnknownSubscriptionError, SubscriptionOfSettingsError.
        """
        secret = self._new_secret()

        def decision(tx: Transaction) -> Subscription:
            former = _own(tx, name)
            changed = replace(
                former,
                target=former.target if target is None else _signed(target, former, secret),
                shape=shape or former.shape,
                filter=filter or former.filter,
            )
            return _put(tx, changed, former=former, action="subscription_changed", by=by)

        return await self._engine.decide(decision)

    async def replace_secret(
        self, name: str, *, instead_of: str | None = None, by: Actor
    ) -> Subscription:
        """With a new one; messages are signed with the old one as well, until the next time.

        If `instead_of` is given, only while that is the newest one: a request that comes twice
        would otherwise replace it twice, and the receiver would know neither.
        Raises UnknownSubscriptionError, SubscriptionOfSettingsError, SecretInFileError,
        SecretReplacedError.
        """
        secret = self._new_secret()

        def decision(tx: Transaction) -> Subscription:
            former = _own(tx, name)
            if not isinstance(former.target, Webhook) or former.target.secret_file:
                raise SecretInFileError(name)
            if instead_of is not None and former.target.secrets[:1] != (instead_of,):
                raise SecretReplacedError(name)
            secrets = (secret, *former.target.secrets[:1])
            changed = replace(former, target=replace(former.target, secrets=secrets))
            return _put(tx, changed, former=former, action="subscription_changed", by=by)

        return await self._engine.decide(decision)

    async def remove(self, name: str, *, by: Actor) -> None:
        """With all that was not delivered.

        Raises UnknownSubscriptionError, SubscriptionOfSettingsError.
        """

        def decision(tx: Transaction) -> None:
            _own(tx, name)
            _remove(tx, name, by=by)

        await self._engine.decide(decision)

    async def pause(self, name: str, *, by: Actor) -> Subscription:
        """Keep its messages until it is resumed. Raises UnknownSubscriptionError."""

        def decision(tx: Transaction) -> Subscription:
            tx.lock_publishing()
            former = _found(tx, name)
            paused = replace(former, state=SubscriptionState.PAUSED)
            return _put(tx, paused, former=former, action="subscription_paused", by=by)

        return await self._engine.decide(decision)

    async def resume(self, name: str, *, by: Actor) -> Subscription:
        """Deliver what was kept, for which there is a day from now on.

        Raises UnknownSubscriptionError.
        """

        def decision(tx: Transaction) -> Subscription:
            tx.lock_publishing()
            former = _found(tx, name)
            if former.state is SubscriptionState.PAUSED:
                tx.requeue(name)
            resumed = replace(former, state=SubscriptionState.ACTIVE)
            return _put(tx, resumed, former=former, action="subscription_resumed", by=by)

        return await self._engine.decide(decision)

    async def redeliver(self, name: str, numbers: Collection[int] = (), *, by: Actor) -> int:
        """Try undelivered messages again, these or all, and at once what waits for its next try.

        Returns how many there are. Raises UnknownSubscriptionError.
        """

        def decision(tx: Transaction) -> int:
            tx.lock_publishing()
            _found(tx, name)
            found = tx.redeliver(name, numbers)
            if found:
                cause = f"{name}: {found} message{'' if found == 1 else 's'}"
                tx.record("subscription_redelivered", by=by, cause=cause)
            return found

        return await self._engine.decide(decision)

    async def test(self, name: str, *, by: Actor) -> Outcome:
        """Send it a message of an event that there is not, once, and say what came of it.

        Raises UnknownSubscriptionError.
        """
        subscription = (await self.show(name)).subscription
        message = self._test_message(subscription, by=by)
        return await self._messenger.deliver(message, subscription)

    async def keep(self, declared: Collection[Declared], *, by: Actor) -> None:
        """Add, change and remove subscriptions, so that these are those of the settings.

        One that an operator has added under such a name becomes one of the settings.
        Raises BadSubscriptionNameError, TooManySubscriptionsError.
        """
        for each in declared:
            refuse_bad_name(each.name)
        secrets = {each.name: self._new_secret() for each in declared}

        def decision(tx: Transaction) -> None:
            tx.lock_publishing()
            names = {each.name for each in declared}
            for former in tx.subscriptions():
                if former.origin is Origin.SETTINGS and former.name not in names:
                    _remove(tx, former.name, by=by)
            for each in declared:
                _keep(tx, each, secret=secrets[each.name], by=by)

        if declared or any(
            view.subscription.origin is Origin.SETTINGS for view in await self.show_all()
        ):
            await self._engine.decide(decision)

    def _views(self, snapshot: Snapshot) -> list[SubscriptionView]:
        health = snapshot.subscription_health(now=self._real_now())
        return [
            SubscriptionView(subscription=each, health=health[each.name])
            for each in snapshot.subscriptions()
        ]

    def _test_message(self, subscription: Subscription, *, by: Actor) -> Message:
        sample = next(samples())
        now = self._real_now()
        about = f"This is a test of the subscription {subscription.name}. No VM is affected."
        return sample._replace(
            number=0,
            at=now,
            scope_id=ScopeId("test"),
            # An event of its own, so that receivers don't take the message for one they had.
            event=replace(
                sample.event,
                id=EventId(self._new_id().upper()),
                created_at=now,
                not_before=now,
                description=about,
            ),
            actor=by.name,
            publishing=replace(sample.publishing, enabled=True),
        )


def refuse_bad_name(name: str) -> None:
    """Raises BadSubscriptionNameError."""
    if not _NAME.fullmatch(name):
        raise BadSubscriptionNameError(name)


def _found(snapshot: Snapshot, name: str) -> Subscription:
    found = snapshot.subscription(name)
    if found is None:
        raise UnknownSubscriptionError(name)
    return found


def _own(tx: Transaction, name: str) -> Subscription:
    """One that is not kept by the settings."""
    tx.lock_publishing()
    found = _found(tx, name)
    if found.origin is Origin.SETTINGS:
        raise SubscriptionOfSettingsError(name)
    return found


def _added(
    tx: Transaction, declared: Declared, origin: Origin, *, secret: str, by: Actor
) -> Subscription:
    if len(tx.subscriptions()) >= MOST:
        raise TooManySubscriptionsError(MOST)
    subscription = Subscription(
        name=declared.name,
        target=_signed(declared.target, None, secret),
        shape=declared.shape,
        filter=declared.filter,
        origin=origin,
        created_at=tx.real_now,
    )
    return _put(tx, subscription, former=None, action="subscription_added", by=by)


def _keep(tx: Transaction, declared: Declared, *, secret: str, by: Actor) -> None:
    former = tx.subscription(declared.name)
    if former is None:
        _added(tx, declared, Origin.SETTINGS, secret=secret, by=by)
        return
    changed = replace(
        former,
        target=_signed(declared.target, former, secret),
        shape=declared.shape,
        filter=declared.filter,
        origin=Origin.SETTINGS,
    )
    _put(tx, changed, former=former, action="subscription_changed", by=by)


def _signed(target: TargetSpec, former: Subscription | None, secret: str) -> TargetSpec:
    """With the secrets that it had, or a new one, if it is a webhook that says nothing of them."""
    if not isinstance(target, Webhook) or target.secrets or target.secret_file:
        return target
    known = former.target.secrets if former and isinstance(former.target, Webhook) else ()
    return replace(target, secrets=known or (secret,))


def _put(
    tx: Transaction,
    subscription: Subscription,
    *,
    former: Subscription | None,
    action: str,
    by: Actor,
) -> Subscription:
    if subscription != former:
        tx.put_subscription(subscription)
        tx.record(action, by=by, cause=subscription.name)
    return subscription


def _remove(tx: Transaction, name: str, *, by: Actor) -> None:
    tx.remove_subscription(name)
    tx.record("subscription_removed", by=by, cause=name)
