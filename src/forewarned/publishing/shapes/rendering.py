"""A message in the shape that its subscription asks for."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from forewarned.publishing.shapes import cloudevents, event_grid
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.shapes import ShapeName

if TYPE_CHECKING:
    from forewarned.service.subscriptions.template import TextTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What a request consists of, as far as the shape decides that."""

    headers: Mapping[str, str]
    """With the content type."""
    body: bytes


class Rendering:
    """The shape of one subscription."""

    def __init__(self, subscription: Subscription) -> None:
        """Raises BadTemplateError."""
        self._name = subscription.name
        self._shape = subscription.shape
        self._template = (
            _template(subscription.shape.template)
            if subscription.shape.name is ShapeName.TEMPLATE
            else None
        )

    async def render(self, message: Message) -> Rendered:
        """Raises BadTemplateError, which another attempt would raise again."""
        match self._shape.name:
            case ShapeName.CLOUDEVENTS:
                headers, body = cloudevents.structured(message)
            case ShapeName.CLOUDEVENTS_BINARY:
                headers, body = cloudevents.binary(message)
            case ShapeName.EVENT_GRID:
                headers, body = event_grid.notification(message, subscription=self._name)
            case ShapeName.TEMPLATE:
                headers = {"Content-Type": self._shape.content_type}
                body = (await self.text(message) or "").encode()
            case other:
                assert_never(other)
        return Rendered(headers=headers, body=body)

    async def text(self, message: Message) -> str | None:
        """What the template makes of it; None where the shape is no template."""
        if self._template is None:
            return None
        # In a thread: the longest that a template may take is too long for the event loop.
        return await asyncio.to_thread(self._template.render, message)


def _template(text: str) -> "TextTemplate":
    # Where the server is run by the pytest fixture there may be no Jinja2.
    from forewarned.service.subscriptions.template import TextTemplate  # noqa: PLC0415

    return TextTemplate(text)
