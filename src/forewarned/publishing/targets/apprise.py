"""Delivers messages to people, through Apprise: a title and a few lines, or the template's text."""

import asyncio
from datetime import timedelta
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.publishing.shapes import short_text
from forewarned.publishing.shapes.rendering import Rendering
from forewarned.service.subscriptions.errors import BadTemplateError
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome, Refused
from forewarned.service.subscriptions.targets import Apprise
from forewarned.targets.addresses import Reach
from forewarned.targets.apprise import notify
from forewarned.targets.errors import TargetError
from forewarned.targets.http import secret

_PATIENCE: Final = timedelta(seconds=30)
"""For one attempt. Apprise's own limits are shorter, for each connection."""
_MOST_AT_ONCE: Final = 4
"""Each takes a process of 50 MB."""


class AppriseTarget:
    def __init__(
        self,
        subscription: Subscription,
        service: Apprise,
        *,
        reach: Reach,
        patience: timedelta = _PATIENCE,
    ) -> None:
        """Raises BadTemplateError."""
        self._service = service
        self._reach = reach
        self._patience = patience
        self._rendering = Rendering(subscription)
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome:  # noqa: ARG002  # it was made for this one
        try:
            text = await self._rendering.text(message)
        except BadTemplateError as error:
            return Refused(reason=f"the template can't be used: {error}")
        try:
            async with self._places, asyncio.timeout(self._patience.total_seconds()):
                await notify(
                    self._url(),
                    title=short_text.title(message),
                    body=short_text.body(message) if text is None else text,
                    reach=self._reach,
                )
        except TimeoutError:
            limit = format_duration(self._patience)
            return Later(reason=f"{self._service.place} did not accept the message within {limit}")
        except TargetError as error:
            # Apprise does not say whether it is for ever.
            return Later(reason=str(error))
        return Delivered()

    def _url(self) -> str:
        if not self._service.url_file:
            return self._service.url
        return secret(self._service.url_file)
