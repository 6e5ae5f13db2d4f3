"""Delivers messages by the target that each subscription has, made once for as long as it stays."""

import asyncio
from typing import Final, NamedTuple

from forewarned.publishing.ports import MakeTarget, Target
from forewarned.service.subscriptions import subscriptions
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.outcomes import Later, Outcome
from forewarned.service.subscriptions.shapes import Shape
from forewarned.service.subscriptions.targets import TargetSpec

_MOST: Final = 2 * subscriptions.MOST
"""Targets that are kept, each with the certificates that it trusts."""


class _Made(NamedTuple):
    spec: TargetSpec
    shape: Shape
    target: Target


class TargetMessenger:
    def __init__(self, make_target: MakeTarget) -> None:
        self._make_target = make_target
        self._made: dict[str, _Made] = {}
        self._making = asyncio.Lock()

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome:
        try:
            target = await self._target(subscription)
        except ValueError as error:
            # An operator may still mend the subscription.
            return Later(reason=str(error))
        return await target.deliver(message, subscription)

    async def _target(self, subscription: Subscription) -> Target:
        async with self._making:
            made = self._made.get(subscription.name)
            if made is None or made[:2] != (subscription.target, subscription.shape):
                # In a thread: a template takes some tenths of a second at most to compile.
                target = await asyncio.to_thread(self._make_target, subscription)
                made = _Made(subscription.target, subscription.shape, target)
                self._keep(subscription.name, made)
            return made.target

    def _keep(self, name: str, made: _Made) -> None:
        self._made.pop(name, None)
        if len(self._made) >= _MOST:
            # The one that was made first: mostly its subscription was removed long ago.
            del self._made[next(iter(self._made))]
        self._made[name] = made
