"""What a subscription's messages look like: values, without any I/O.

`publishing.shapes.rendering` makes each of these shapes. A new one is a member of `ShapeName`, a
case there, and what makes it beside it.
"""

from dataclasses import dataclass
from enum import StrEnum


class ShapeName(StrEnum):
    CLOUDEVENTS = "cloudevents"
    """One JSON object with the attributes and the data: the structured mode."""
    CLOUDEVENTS_BINARY = "cloudevents-binary"
    """The attributes as headers, the data as the body."""
    EVENT_GRID = "event-grid"
    """As Azure sends them."""
    TEMPLATE = "template"
    """A text of the subscriber's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    name: ShapeName = ShapeName.CLOUDEVENTS
    template: str = ""
    """For `template`: Jinja2."""
    content_type: str = "text/plain; charset=utf-8"
    """For `template`: what its result is."""
    every_scope: bool = False
    """For `event-grid`: also scopes whose policy does not ask for it, as Azure would."""
