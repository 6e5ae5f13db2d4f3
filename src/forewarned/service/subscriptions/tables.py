"""The tables `target` and `shape` of a subscription, in the settings file and in /v1 alike.

One place reads and checks them for both. Errors never show a URL or a secret. The line that
describes a field is the one in the reference.
"""

import re
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from typing_extensions import override

from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.targets import Apprise, TargetSpec, Webhook
from forewarned.targets.signatures import parse_secret
from forewarned.targets.urls import check_content_type, check_url

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://.", re.IGNORECASE | re.DOTALL)
_LONGEST_URL: Final = 2048
_LONGEST_PEM: Final = 256 * 1024
_MOST_SECRETS: Final = 4


class TargetTable(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Where messages go."""

    @property
    def files(self) -> tuple[str, ...]:
        """Its fields that name files of the server, and are given: not for clients of /v1."""
        return ()

    def target(self) -> TargetSpec:
        raise NotImplementedError

    def refuse(self, shape: Shape) -> None:
        """Raise ValueError for a shape that it can't be sent."""

    def refuse_without_secret(self) -> None:
        """Raise ValueError where a secret would be made and shown to no one."""


class WebhookTable(TargetTable, frozen=True, kw_only=True, tag="webhook"):
    """Sends each message to an HTTP service, with a signature."""

    url: str
    """Where messages are sent. No proxy is used, and redirects are not followed."""
    secrets: tuple[str, ...] = ()
    """What messages are signed with, each `whsec_` and base64. The first is the newest."""
    secret_file: Path | None = None
    """A file that has the secrets, one per line."""
    ca: str = ""
    """The CA certificates that sign the service's certificate, as PEM, if the system does not trust
    them.
    """
    ca_file: Path | None = None
    """A file that has them."""

    def __post_init__(self) -> None:
        _refuse_bad_url(self.url)
        if self.secrets and self.secret_file is not None:
            raise ValueError("give either secrets or secret_file")
        if len(self.secrets) > _MOST_SECRETS:
            raise ValueError(f"at most {_MOST_SECRETS} secrets are allowed")
        for each in self.secrets:
            parse_secret(each)
        if self.ca and self.ca_file is not None:
            raise ValueError("give either ca or ca_file")
        if self.ca:
            refuse_bad_certificates(self.ca)

    @property
    @override
    def files(self) -> tuple[str, ...]:
        given = {"secret_file": self.secret_file, "ca_file": self.ca_file}
        return tuple(name for name, path in given.items() if path is not None)

    @override
    def refuse_without_secret(self) -> None:
        if not self.secrets and self.secret_file is None:
            raise ValueError(
                "a webhook needs a secret that its receiver knows, too: make one with"
                " `(printf whsec_; openssl rand -base64 32) > webhook.secret`, and name that file"
                ' with secret_file = "webhook.secret" (or give the secret itself in secrets)'
            )

    @override
    def target(self) -> Webhook:
        return Webhook(
            url=self.url,
            secrets=self.secrets,
            secret_file=_text(self.secret_file),
            ca=self.ca,
            ca_file=_text(self.ca_file),
        )


class AppriseTable(TargetTable, frozen=True, kw_only=True, tag="apprise"):
    """Notifies people through Apprise: in a chat, by mail, on a pager."""

    url: str = ""
    """Apprise's URL for it, such as `slack://…`."""
    url_file: Path | None = None
    """A file that has the URL."""

    def __post_init__(self) -> None:
        if bool(self.url) == (self.url_file is not None):
            raise ValueError("give either url or url_file")
        if self.url and not _SCHEME.match(self.url):
            raise ValueError("url must be one of Apprise's, such as slack://… or mailto://…")

    @property
    @override
    def files(self) -> tuple[str, ...]:
        return () if self.url_file is None else ("url_file",)

    @override
    def target(self) -> Apprise:
        return Apprise(url=self.url, url_file=_text(self.url_file))

    @override
    def refuse(self, shape: Shape) -> None:
        refuse_misfit(self.target(), shape)


AnyTargetTable = WebhookTable | AppriseTable
"""What a field `target` holds."""


class ShapeTable(Struct, frozen=True, kw_only=True):
    """What messages look like."""

    kind: ShapeName = ShapeName.CLOUDEVENTS
    """`cloudevents`, `cloudevents-binary`, `event-grid` or `template`."""
    template: str = ""
    """The text, for `template`."""
    template_file: Path | None = None
    """A file that has it, read when the server starts."""
    content_type: str | None = None
    """The media type of the text, for `template`."""
    every_scope: bool = False
    """Whether `event-grid` also sends events of scopes whose policy does not ask for Event Grid."""

    def __post_init__(self) -> None:
        if self.kind is not ShapeName.TEMPLATE:
            given = {
                "template": self.template,
                "template_file": self.template_file,
                "content_type": self.content_type,
            }
            for name, value in given.items():
                if value:
                    raise ValueError(f'{name} is only for kind = "template"')
        elif bool(self.template) == (self.template_file is not None):
            raise ValueError("give either template or template_file")
        if self.every_scope and self.kind is not ShapeName.EVENT_GRID:
            raise ValueError('every_scope is only for kind = "event-grid"')
        if self.content_type is not None:
            check_content_type(self.content_type)
        if self.template:
            refuse_bad_template(self.template)

    @property
    def files(self) -> tuple[str, ...]:
        return () if self.template_file is None else ("template_file",)

    def shape(self) -> Shape:
        """Raises ValueError for a template in a file that can't be read, or used."""
        template = self.template
        if self.template_file is not None:
            template = _read(self.template_file)
            refuse_bad_template(template)
        return Shape(
            name=self.kind,
            template=template,
            content_type=self.content_type or Shape().content_type,
            every_scope=self.every_scope,
        )


AnyShapeTable = ShapeName | ShapeTable
"""What a field `shape` holds: its name is enough where it has no settings."""


def refuse_misfit(target: TargetSpec, shape: Shape) -> None:
    """Raise ValueError for a shape that the target can't be sent."""
    if isinstance(target, Apprise) and shape.name not in {ShapeName.TEMPLATE, Shape().name}:
        raise ValueError(
            f"Apprise sends text for people to read, and {shape.name} is not readable text: omit"
            " the shape, or give a template"
        )


def shape_of(given: AnyShapeTable) -> Shape:
    """Raises ValueError for a template in a file that can't be read, or used."""
    table = ShapeTable(kind=given) if isinstance(given, ShapeName) else given
    return table.shape()


def refuse_bad_template(text: str) -> None:
    """Raises ValueError that names the line."""
    # What reads settings need not have Jinja2, which is part of the server.
    from forewarned.service.subscriptions.template import TextTemplate  # noqa: PLC0415

    try:
        TextTemplate(text)
    except ValueError as error:
        raise ValueError(f"the template can't be used: {error}") from error


def refuse_bad_certificates(pem: str) -> None:
    if len(pem) > _LONGEST_PEM:
        raise ValueError(f"the certificates are longer than {_LONGEST_PEM} characters")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError("the certificates are not PEM") from error


def _refuse_bad_url(url: str) -> None:
    """Without showing it: its path and its query may be secrets."""
    try:
        check_url(url)
    except ValueError:
        raise ValueError("url must start with http:// or https:// and name a host") from None
    if len(url) > _LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"url must be {_LONGEST_URL} printable ASCII characters at most")
    parts = urlsplit(url)
    if parts.fragment:
        raise ValueError("url must not have a fragment, which is never sent: omit the # part")
    if parts.username or parts.password:
        raise ValueError(
            "url must not have a user or a password: receivers verify signatures instead"
        )


def _read(path: Path) -> str:
    try:
        # Line breaks at the end of a template are its author's, so they stay.
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"can't read {path}: {why}") from error


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)
