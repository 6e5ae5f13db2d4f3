"""A table `[[subscriptions]]` of the settings file, and every mistake in it."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from forewarned.config.tables import TableReader
from forewarned.core.errors import RefusalError
from forewarned.core.model import EventSource, EventType
from forewarned.runtime.settings.subscriptions import TABLE
from forewarned.service.subscriptions.model import Filter, PublishedStatus
from forewarned.service.subscriptions.shapes import ShapeName
from forewarned.service.subscriptions.subscriptions import MOST, Declared, refuse_bad_name
from forewarned.service.subscriptions.tables import AnyShapeTable, AnyTargetTable, shape_of


class FilterTable(Struct, frozen=True, kw_only=True):
    """Which messages a subscription is for. What is left out takes all."""

    types: tuple[EventType, ...] = ()
    statuses: tuple[PublishedStatus, ...] = ()
    sources: tuple[EventSource, ...] = ()
    scopes: tuple[str, ...] = ()
    vms: tuple[str, ...] = ()

    def filter(self) -> Filter:
        return Filter(
            types=frozenset(self.types),
            statuses=frozenset(self.statuses),
            sources=frozenset(self.sources),
            scopes=self.scopes,
            vms=self.vms,
        )


class SubscriptionTable(Struct, frozen=True, kw_only=True):
    """A table `[[subscriptions]]`."""

    name: str
    target: AnyTargetTable
    shape: AnyShapeTable = ShapeName.CLOUDEVENTS
    filter: FilterTable = FilterTable()


# Any: what TOML is made of.
def read_tables(tables: Any, reader: TableReader) -> tuple[Declared, ...]:
    """Its mistakes are the reader's."""
    return tuple(_declared(tables, reader))


def _declared(tables: object, reader: TableReader) -> Iterator[Declared]:
    if not isinstance(tables, list):
        reader.refuse((TABLE,), "expected tables like [[subscriptions]]")
        return
    if len(tables) > MOST:
        reader.refuse((TABLE,), f"at most {MOST} subscriptions are allowed")
    seen: set[str] = set()
    for number, raw in enumerate(tables):
        table = reader.table(raw, SubscriptionTable, (TABLE, number))
        if table is None:
            continue
        if table.name in seen:
            reader.refuse((TABLE, number, "name"), f"another one is already named {table.name!r}")
        seen.add(table.name)
        try:
            refuse_bad_name(table.name)
        except RefusalError as wrong:
            reader.refuse((TABLE, number, "name"), str(wrong))
        try:
            table.target.refuse_without_secret()
        except ValueError as wrong:
            reader.refuse((TABLE, number, "target"), str(wrong))
        try:
            shape = shape_of(table.shape)
            table.target.refuse(shape)
        except ValueError as wrong:
            reader.refuse((TABLE, number, "shape"), str(wrong))
            continue
        yield Declared(
            name=table.name,
            target=table.target.target(),
            shape=shape,
            filter=table.filter.filter(),
        )
