"""What `/v1/subscriptions` is asked with: bodies and query parameters.

Files of the server can be named in its settings only: here a name would tell what is there.
"""

from typing import Annotated

import msgspec

from forewarned.control.http.errors import BadRequestError
from forewarned.control.v1.request_wire import Ask, Limit, RowId, Text
from forewarned.control.v1.wire import about
from forewarned.core.model import EventSource, EventType
from forewarned.service.subscriptions import model
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.subscriptions import Declared
from forewarned.service.subscriptions.tables import (
    AppriseTable,
    ShapeTable,
    WebhookTable,
    refuse_misfit,
)
from forewarned.service.subscriptions.targets import TargetSpec

_Patterns = Annotated[tuple[Text, ...], msgspec.Meta(max_length=model.MOST_PATTERNS)]


class WebhookTarget(Ask, frozen=True, tag_field="kind", tag="webhook"):
    """An HTTP service."""

    url: Text
    secrets: Annotated[
        tuple[Text, ...],
        about("secrets to sign messages with, the newest first; if none is given, one is made"),
    ] = ()
    ca: Annotated[
        str,
        about(
            "the CA certificates that sign the service's certificate, as PEM, if the system does"
            " not trust them"
        ),
    ] = ""

    def table(self) -> WebhookTable:
        return WebhookTable(url=self.url, secrets=self.secrets, ca=self.ca)


class AppriseTarget(Ask, frozen=True, tag_field="kind", tag="apprise"):
    """A chat, a mailbox or a pager, through Apprise."""

    url: Annotated[Text, about("an Apprise URL, such as `slack://…`")]

    def table(self) -> AppriseTable:
        return AppriseTable(url=self.url)


class ShapeOf(Ask, frozen=True):
    """What messages look like."""

    kind: ShapeName = ShapeName.CLOUDEVENTS
    template: Annotated[str, about("the text, for `template`: Jinja2")] = ""
    content_type: Annotated[str | None, about("media type of the text, for `template`")] = None
    every_scope: Annotated[
        bool,
        about("for `event-grid`: also publish events of scopes whose policy does not ask for it"),
    ] = False

    def shape(self) -> Shape:
        return ShapeTable(
            kind=self.kind,
            template=self.template,
            content_type=self.content_type,
            every_scope=self.every_scope,
        ).shape()


class FilterOf(Ask, frozen=True):
    """Which messages are sent. An empty field matches all."""

    types: tuple[EventType, ...] = ()
    statuses: tuple[model.PublishedStatus, ...] = ()
    sources: tuple[EventSource, ...] = ()
    scopes: Annotated[_Patterns, about("ids of scopes, with `*`, `?` and `[…]` as in a shell")] = ()
    vms: Annotated[
        _Patterns, about("names of VMs, with the same wildcards; one VM of the event has to match")
    ] = ()

    def filter(self) -> model.Filter:
        return model.Filter(
            types=frozenset(self.types),
            statuses=frozenset(self.statuses),
            sources=frozenset(self.sources),
            scopes=self.scopes,
            vms=self.vms,
        )


class AddSubscription(Ask, frozen=True):
    """A subscription. Without a shape it gets CloudEvents, and without a filter all messages."""

    name: Annotated[Text, about("lower-case letters, digits, `-`, `_` and `.`")]
    target: WebhookTarget | AppriseTarget
    shape: ShapeOf = ShapeOf()
    filter: FilterOf = FilterOf()

    def declared(self) -> Declared:
        """Raises BadRequestError."""
        target, shape = checked_target(self.target), checked_shape(self.shape)
        refuse_bad_pair(target, shape, field="target")
        return Declared(name=self.name, target=target, shape=shape, filter=self.filter.filter())


class ChangeSubscription(Ask, frozen=True):
    """Omitted fields stay as they are. A webhook keeps its secrets unless new ones are given."""

    target: WebhookTarget | AppriseTarget | None = None
    shape: ShapeOf | None = None
    filter: FilterOf | None = None


def checked_target(given: WebhookTarget | AppriseTarget) -> TargetSpec:
    """Raises BadRequestError."""
    try:
        return given.table().target()
    except ValueError as error:
        raise BadRequestError(str(error), field="target") from error


def checked_shape(given: ShapeOf) -> Shape:
    """Raises BadRequestError."""
    try:
        return given.shape()
    except ValueError as error:
        raise BadRequestError(str(error), field="shape") from error


def refuse_bad_pair(target: TargetSpec, shape: Shape, *, field: str) -> None:
    """Raises BadRequestError."""
    try:
        refuse_misfit(target, shape)
    except ValueError as error:
        raise BadRequestError(str(error), field=field) from error


class Redeliver(Ask, frozen=True):
    numbers: Annotated[
        tuple[RowId, ...],
        msgspec.Meta(
            max_length=10_000,
            description="numbers of the messages; if none are given, all messages",
        ),
    ] = ()


class DeliveriesQuery(Ask, frozen=True):
    state: model.DeliveryState | None = None
    after: Annotated[RowId, about("only messages with higher numbers")] | None = None
    limit: Annotated[Limit, about("if there are more, the oldest are listed")] = 100

    def filter(self, name: str) -> model.DeliveryFilter:
        return model.DeliveryFilter(
            subscription=name, state=self.state, after=self.after or 0, limit=self.limit
        )
