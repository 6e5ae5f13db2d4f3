"""Where a subscription's messages go, and what they look like there: values, without any I/O.

`publishing` knows how to reach each of these targets, and how to make each of these shapes. A new
kind of target is a class here, a member of `TargetSpec`, and what delivers to it there. The store
keeps a target as its kind and the JSON of its fields.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An HTTP service, which verifies signatures as Standard Webhooks has them."""

    kind: ClassVar[str] = "webhook"
    url: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """`whsec_…`, the newest first: messages are signed with each, so that one can be replaced."""
    ca_file: str = ""
    """Whose certificates are trusted; empty for those that the system trusts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apprise:
    """A chat, a mailbox, a pager: what Apprise has a URL for."""

    kind: ClassVar[str] = "apprise"
    url: str = field(repr=False)
    """With its credentials."""


TargetSpec = Webhook | Apprise


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
    every_scope: bool = False
    """For `event-grid`: also scopes whose policy does not ask for it, as Azure would."""
