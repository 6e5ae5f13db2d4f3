"""Notifies people: through a webhook that takes JSON, or through Apprise."""

import json
from enum import StrEnum
from typing import Annotated, Final

from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.hooks.templates import check_template, event_json, fill_line
from forewarned.agent.model import Phase
from forewarned.config.values import one_of
from forewarned.targets.apprise import check_service, notify, service_of
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Request, secret, send
from forewarned.targets.urls import check_url, origin

_TEXT: Final = (
    "{me}: {phase} phase of {type} {event_id}"
    ' (NotBefore: "{not_before}", description: "{description}")'
)
_TITLE: Final = "{type}: {phase} on {me}"
_GONE: Final = ("slack", "teams")


class Shape(StrEnum):
    JSON = "json"
    """The event as hooks get it, and the text as `Text`."""
    APPRISE = "apprise"
    """The text, to whatever Apprise has a URL for."""


def _parse_shape(raw: object) -> Shape:
    if raw in _GONE:
        raise ValueError(
            f'{raw} is sent through Apprise now: write shape = "apprise", keep the URL, and install'
            " forewarned[notify]"
        )
    return one_of(Shape)(raw)


class NotifyHook(HookTable, frozen=True, kw_only=True):
    """Sends a message to a webhook, or through Apprise to a chat, a mailbox or a pager."""

    required: bool = False
    """Whether the event is approved only if this hook is done."""
    url: str | None = None
    """The webhook's URL; or, for Apprise, the service's URL: `slack://…`, or the webhook URL that
    Slack shows."""
    url_file: str | None = None
    """A file that contains the URL, if the URL is a secret."""
    shape: Annotated[Shape, _parse_shape] = Shape.JSON
    """How the message is sent: `json` as JSON to a webhook, `apprise` as text through Apprise."""
    text: str = _TEXT
    """The message, with placeholders."""

    def __post_init__(self) -> None:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("give either url or url_file")
        if self.url is not None and self.shape is Shape.JSON:
            check_url(self.url)
        check_template(self.text)

    @override
    async def run(self, call: Call) -> str:
        url = self._url()
        place = self._place(url)
        call.waiting_for(f"an answer from {place}")
        text = fill_line(self.text, call).strip()
        match self.shape:
            case Shape.JSON:
                await _post(url, {**json.loads(event_json(call)), "Text": text})
            case Shape.APPRISE:
                await notify(url, title=fill_line(_TITLE, call), body=text)
        return f"notified {place}"

    @override
    async def check(self) -> list[str]:
        # Only whether it can be reached, or used: someone would read a message.
        match self.shape:
            case Shape.JSON:
                await send(Request(method="OPTIONS", url=f"{origin(self._url())}/"))
            case Shape.APPRISE:
                await check_service(self._url())
        return []

    @override
    def describe(self, _phase: Phase) -> str:
        where = self._place(self.url) if self.url else "the URL in url_file"
        return f"send a message to {where}"

    def _place(self, url: str) -> str:
        """For people: without what may be a secret."""
        return origin(url) if self.shape is Shape.JSON else service_of(url)

    def _url(self) -> str:
        if self.url is not None:
            return self.url
        url = secret(self.url_file or "")
        try:
            if self.shape is Shape.JSON:
                check_url(url)
        except ValueError:
            # Without the URL: it is in a file because it is a secret.
            raise TargetError(f"{self.url_file} does not contain a URL") from None
        return url


async def _post(url: str, told: dict[str, object]) -> None:
    answer = await send(
        Request(
            method="POST",
            url=url,
            headers={"Content-Type": "application/json"},
            body=json.dumps(told).encode(),
        )
    )
    if not 200 <= answer.status < 300:
        raise TargetError(f"{origin(url)} answered {answer.status}: {answer.excerpt()}")
