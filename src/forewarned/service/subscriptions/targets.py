"""Where a subscription's messages go: values, without any I/O.

`publishing` knows how to reach each of these targets. A new kind of target is a class here, a
member of `TargetSpec`, a table in `tables`, what delivers to it in `publishing.targets.kinds`, and
a decoder in `storage.relational.publishing.rows`: the store keeps a target as its kind and the JSON
of its fields.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from forewarned.targets.urls import origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An HTTP service, which verifies signatures as Standard Webhooks has them."""

    kind: ClassVar[str] = "webhook"
    url: str = field(repr=False)
    """Its path or its query may be a secret."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """`whsec_…`, the newest first: messages are signed with each, so that one can be replaced."""
    secret_file: str = ""
    """Has the secrets instead, one in each line; read at each attempt."""
    ca: str = field(default="", repr=False)
    """The certificates that are trusted, as PEM; empty for those that the system trusts."""
    ca_file: str = ""
    """Has them instead."""

    @property
    def place(self) -> str:
        """For people: without what may be a secret."""
        return origin(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apprise:
    """A chat, a mailbox, a pager: what Apprise has a URL for."""

    kind: ClassVar[str] = "apprise"
    url: str = field(default="", repr=False)
    """With its credentials."""
    url_file: str = ""
    """Has the URL instead; read at each attempt."""

    @property
    def place(self) -> str:
        """For people. All that follows the scheme may be a secret."""
        return f"{self.url.partition('://')[0]}://…" if self.url else f"the URL in {self.url_file}"


TargetSpec = Webhook | Apprise
