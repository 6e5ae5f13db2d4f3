"""Notifies people: through a webhook that takes JSON, or a channel of Slack or Teams."""

import json
import re
from enum import StrEnum
from typing import Any, Final

from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.hooks.templates import check_template, event_json, fill_line
from forewarned.agent.model import Phase
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Request, check_url, origin, secret, send

_TEXT: Final = "{me}: {phase} for {type} {event_id}, not before {not_before}. {description}"
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]()#~<>])")


class Shape(StrEnum):
    JSON = "json"
    """The event as hooks get it, and the text as `Text`."""
    SLACK = "slack"
    TEAMS = "teams"
    """A message with an adaptive card, as Teams workflows take it."""


class NotifyHook(HookTable, frozen=True, kw_only=True):
    """Sends a message to a webhook, or to a channel of Slack or Teams."""

    required: bool = False
    """Whether the event is approved only if this hook is done."""
    url: str | None = None
    """The webhook's URL."""
    url_file: str | None = None
    """A file that holds the URL, if that is a secret."""
    shape: Shape = Shape.JSON
    """What is sent: `json`, `slack` or `teams`."""
    text: str = _TEXT
    """The message, with placeholders."""

    def __post_init__(self) -> None:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("give either url or url_file")
        if self.url is not None:
            check_url(self.url)
        check_template(self.text)

    @override
    async def run(self, call: Call) -> str:
        url = self._url()
        call.waiting_for(f"an answer from {origin(url)}")
        told = self._body(fill_line(self.text, call).strip(), call)
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
        return f"notified {origin(url)}"

    @override
    async def check(self) -> list[str]:
        # Only whether it can be reached: someone would read a message.
        await send(Request(method="OPTIONS", url=f"{origin(self._url())}/"))
        return []

    @override
    def describe(self, _phase: Phase) -> str:
        where = origin(self.url) if self.url else "the URL in url_file"
        return f"send a message to {where}"

    def _url(self) -> str:
        if self.url is not None:
            return self.url
        url = secret(self.url_file or "")
        try:
            check_url(url)
        except ValueError:
            # Without the URL: it is in a file because it is a secret.
            raise TargetError(f"{self.url_file} does not hold a URL") from None
        return url

    # Any: what JSON is made of.
    def _body(self, text: str, call: Call) -> dict[str, Any]:
        match self.shape:
            case Shape.JSON:
                return {**json.loads(event_json(call)), "Text": text}
            case Shape.SLACK:
                return {"text": _for_slack(text)}
            case Shape.TEAMS:
                return _card(text)


def _for_slack(text: str) -> str:
    """These three mean something to Slack: links, mentions, entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _card(text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [
                        {
                            "type": "TextBlock",
                            # A card's text is Markdown, and an event's may hold a link.
                            "text": _MARKDOWN.sub(r"\\\1", text),
                            "wrap": True,
                        }
                    ],
                },
            }
        ],
    }
