"""What listings find, and how long, where SQL does not say it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from forewarned.core.ids import HostName
from forewarned.service.records import GroupPlace
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
