"""Filters and orders of listings: for the store in memory all of them, where SQLite has SQL."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import EventStatus, Scope
from forewarned.service.listings import EventFilter, HistoryFilter, HistoryRow
from forewarned.service.records import EventRecord, GroupPlace
from forewarned.storage.diff import fold

_OPERATIONS_LAST: Final = timedelta(days=7)
"""Far longer than clients wait for one, and short enough that they never fill a disk."""


def forgotten_before(now: datetime) -> datetime:
    """Operations that started before this are dropped."""
    return now - _OPERATIONS_LAST


def each_once(groups: Iterable[GroupPlace]) -> list[GroupPlace]:
    """By name. Of groups that differ only in letter case, always the same one is shown."""
    found: dict[tuple[str, ...], GroupPlace] = {}
    for group in sorted(groups):
        found.setdefault((fold(group.name), *map(fold, group)), group)
    return [group for _, group in sorted(found.items())]


def likeness(name: str, text: str) -> int | None:
    """0 if the name begins with the text, 1 if it has it elsewhere, None if it does not."""
    place = fold(name).find(fold(text))
    return None if place < 0 else min(place, 1)


def hosts_like(hosts: Iterable[HostName], text: str) -> list[HostName]:
    """Those that begin with the text first."""
    ranked = ((likeness(host, text), fold(host), host) for host in hosts)
    return [host for rank, _, host in sorted(r for r in ranked if r[0] is not None)]


def is_wanted_event(record: EventRecord, wanted: EventFilter) -> bool:
    return (
        (wanted.statuses is None or record.event.status in wanted.statuses)
        and (wanted.scope_id is None or record.scope_id == wanted.scope_id)
        and (wanted.resource is None or is_among(wanted.resource, record.event.resources))
        and (wanted.type is None or record.event.type is wanted.type)
        and (wanted.maintenance is None or record.event.maintenance == wanted.maintenance)
        and (wanted.source is None or record.event.source is wanted.source)
    )


def urgency(record: EventRecord) -> tuple[object, ...]:
    event, ended_at = record.event, record.ended_at
    if ended_at is not None:
        return 2, -ended_at.timestamp()
    if event.status is EventStatus.STARTED:
        return 1, 0.0 if event.started_at is None else event.started_at.timestamp()
    return 0, 0.0 if event.not_before is None else event.not_before.timestamp()


def is_wanted_row(row: HistoryRow, wanted: HistoryFilter) -> bool:
    return (
        (wanted.scope_id is None or row.scope_id == wanted.scope_id)
        and (wanted.resource is None or is_among(wanted.resource, row.resources))
        and (wanted.event_id is None or row.event_id == wanted.event_id)
        and (wanted.type is None or row.event_type is wanted.type)
        and (wanted.action is None or row.action == wanted.action)
        and (wanted.actor is None or row.actor == wanted.actor)
        and (wanted.since is None or row.at >= wanted.since)
        and (wanted.until is None or row.at < wanted.until)
        and (wanted.before_id is None or row.id < wanted.before_id)
    )


def is_scope_like(scope: Scope, text: str, hosts: Collection[HostName]) -> bool:
    return (
        fold(text) in fold(scope.id)
        or any(fold(text) in fold(name) for name in scope.resources)
        or any(vm.host in hosts for vm in scope.resources.values())
    )


def is_among(name: ResourceName, names: Collection[ResourceName]) -> bool:
    return fold(name) in map(fold, names)
