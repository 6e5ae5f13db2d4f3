"""Delivers messages to an HTTP service: signed, to an address that was checked, once per attempt.

Which answer means what is in `outcome_of`, and in docs/publishing.md.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from forewarned import __version__
from forewarned.clock import wall_clock
from forewarned.config.durations import format_duration
from forewarned.publishing.shapes.rendering import Rendered, Rendering
from forewarned.publishing.targets.handshake import Handshake, Unconfirmed
from forewarned.service.subscriptions.errors import BadTemplateError
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Gone, Later, Outcome, Refused
from forewarned.service.subscriptions.shapes import ShapeName
from forewarned.service.subscriptions.targets import Webhook
from forewarned.targets.addresses import Reach, Resolve, permitted
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer, Request, secret, send_to, trusted
from forewarned.targets.signatures import parse_secret, signed
from forewarned.targets.urls import hidden, origin

PATIENCE: Final = timedelta(seconds=20)
"""For one attempt: resolving, connecting, the handshake of Event Grid and an answer together."""
_LONGEST_ANSWER: Final = 4 * 1024
_LATER: Final = frozenset({408, 425, 429})
_AGENT: Final = f"forewarned/{__version__}"


class WebhookTarget:
    def __init__(
        self,
        subscription: Subscription,
        hook: Webhook,
        *,
        reach: Reach,
        now: Callable[[], datetime] = wall_clock,
        resolve: Resolve | None = None,
        patience: timedelta = PATIENCE,
    ) -> None:
        """Raises BadTemplateError."""
        self._hook = hook
        self._where = origin(hook.url)
        self._reach = reach
        self._now = now
        self._resolve = resolve
        self._patience = patience
        self._rendering = Rendering(subscription)
        self._handshake = (
            Handshake(subscription.name)
            if subscription.shape.name is ShapeName.EVENT_GRID
            else None
        )
        self._trust: ssl.SSLContext | None = None

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome:  # noqa: ARG002  # it was made for this one
        try:
            rendered = await self._rendering.render(message)
        except BadTemplateError as error:
            return Refused(reason=f"the template can't be used: {error}")
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                outcome = await self._attempt(message, rendered)
        except TimeoutError:
            limit = format_duration(self._patience)
            return Later(reason=f"{self._where} did not answer within {limit}")
        except TargetError as error:
            # Also what only an operator can mend, such as a certificate: there is a day for that.
            return Later(reason=str(error))
        if isinstance(outcome, Delivered):
            return outcome
        return replace(outcome, reason=hidden(self._hook.url, outcome.reason))

    async def _attempt(self, message: Message, rendered: Rendered) -> Outcome:
        if self._handshake is not None:
            failure = await self._handshake.failure(
                partial(self._send, f"{message.id}-validation"), at=self._now()
            )
            if failure is not None:
                return _outcome_of_failure(failure, where=self._where, now=self._now())
        answer = await self._send(message.id, rendered)
        return outcome_of(answer, where=self._where, now=self._now())

    async def _send(self, message_id: str, rendered: Rendered) -> Answer:
        parts = urlsplit(self._hook.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = await permitted(
            parts.hostname or "", port, reach=self._reach, resolve=self._resolve
        )
        at = int(self._now().timestamp())
        request = Request(
            method="POST",
            url=self._hook.url,
            headers={
                **rendered.headers,
                "User-Agent": _AGENT,
                **signed(self._keys(), message_id, at, rendered.body),
            },
            body=rendered.body,
        )
        return await send_to(
            addresses,
            request,
            trust=self._trusted() if parts.scheme == "https" else None,
            longest_body=_LONGEST_ANSWER,
        )

    def _keys(self) -> list[bytes]:
        """Read at each attempt, so that they can be replaced."""
        texts = self._hook.secrets
        if self._hook.secret_file:
            texts = tuple(secret(self._hook.secret_file).split())
        if not texts:
            place = f"{self._hook.secret_file} has" if self._hook.secret_file else "there is"
            raise TargetError(f"{place} no secret to sign with")
        try:
            return [parse_secret(text) for text in texts]
        except ValueError as error:
            place = f" in {self._hook.secret_file}" if self._hook.secret_file else ""
            raise TargetError(f"can't sign with the secret{place}: {error}") from error

    def _trusted(self) -> ssl.SSLContext:
        if self._hook.ca_file:
            # Each time: the file may be replaced, and is small.
            return trusted(ca_file=self._hook.ca_file)
        if self._trust is None:
            self._trust = trusted(ca=self._hook.ca)
        return self._trust


def outcome_of(answer: Answer, *, where: str, now: datetime) -> Outcome:
    """What an answer means for the delivery."""
    status = answer.status
    told = f"{where} answered {status}"
    if 200 <= status < 300:
        return Delivered()
    if 300 <= status < 400:
        return Refused(reason=f"{told}: redirects are not followed, give the URL it leads to")
    told = f"{told}: {answer.excerpt()}".removesuffix(": ")
    if status >= 500 or status in _LATER:
        return Later(reason=told, retry_after=_retry_after(answer, now))
    if status == HTTPStatus.GONE:
        return Gone(reason=told)
    return Refused(reason=told)


def _outcome_of_failure(failure: Unconfirmed, *, where: str, now: datetime) -> Outcome:
    """A webhook may ask for time, or be gone. Whatever else it says, it may confirm later."""
    outcome = outcome_of(failure.answer, where=where, now=now)
    told = f"{where} {failure.why}"
    return (
        replace(outcome, reason=told) if isinstance(outcome, Later | Gone) else Later(reason=told)
    )


def _retry_after(answer: Answer, now: datetime) -> timedelta | None:
    """From seconds or a date; None for what is neither."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        # A number of any length: none is meant to be more than a year.
        return timedelta(seconds=min(int(text[:9]), 366 * 86400))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # HTTP's dates are in GMT, even where the zone is missing.
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(timedelta(0), at - now)
