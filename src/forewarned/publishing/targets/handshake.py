"""Event Grid's handshake: a webhook proves that it wants events before it is sent any.

https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema

Once for as long as this process knows the subscription: what has agreed stays agreed, and asking
again after a restart does no harm.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from forewarned.publishing.shapes import event_grid
from forewarned.publishing.shapes.rendering import Rendered
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer


class Unconfirmed(NamedTuple):
    """What came instead of a confirmation."""

    answer: Answer
    why: str
    """For people."""


class Handshake:
    def __init__(self, subscription: str) -> None:
        self._subscription = subscription
        self._is_done = False
        self._failure: Unconfirmed | None = None
        self._answers = 0
        self._one_at_a_time = asyncio.Lock()

    async def failure(
        self, send: Callable[[Rendered], Awaitable[Answer]], *, at: datetime
    ) -> Unconfirmed | None:
        """Ask, unless it has agreed before; None if it has.

        Who waits while another asks gets that answer: it may say that no one is to ask for a while.
        """
        before = self._answers
        async with self._one_at_a_time:
            if self._is_done:
                return None
            if self._answers == before:
                self._failure = await self._ask(send, at=at)
                self._is_done = self._failure is None
                self._answers += 1
            return self._failure

    async def _ask(
        self, send: Callable[[Rendered], Awaitable[Answer]], *, at: datetime
    ) -> Unconfirmed | None:
        code = secrets.token_hex(16)
        headers, body = event_grid.validation(code, subscription=self._subscription, at=at)
        answer = await send(Rendered(headers=headers, body=body))
        why = _why_not(answer, code)
        return None if why is None else Unconfirmed(answer, why)


def _why_not(answer: Answer, code: str) -> str | None:
    asked = "Event Grid's validation event"
    wanted = 'expected 200 and {"validationResponse": "<the validationCode it was sent>"}'
    if answer.status != 200:
        told = f"answered {answer.status} to {asked}"
        return f"{told}: {wanted}" + (f", got: {answer.excerpt()}" if answer.body else "")
    try:
        found = answer.json()
    except TargetError:
        found = None
    response = found.get("validationResponse") if isinstance(found, dict) else None
    if response != code:
        return f"did not confirm {asked}: {wanted}"
    return None
