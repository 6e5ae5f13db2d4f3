"""What every store does alike, however it keeps things."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from forewarned.core.ids import HostName
from forewarned.service.records import GroupPlace
from forewarned.storage.diff import fold

_OPERATIONS_LAST: Final = timedelta(days=7)
"""Far longer than anybody waits for one, and short enough that they never fill a disk."""


def forgotten_before(now: datetime) -> datetime:
    """Operations that started before this are of no use to anybody any more."""
    return now - _OPERATIONS_LAST


def each_once(groups: Iterable[GroupPlace]) -> list[GroupPlace]:
    """By name. Of those that differ in letter case only, always the same one is shown."""
    found: dict[tuple[str, ...], GroupPlace] = {}
    for group in sorted(groups):
        found.setdefault((fold(group.name), *map(fold, group)), group)
    return [group for _, group in sorted(found.items())]


def likeness(name: str, text: str) -> int | None:
    """0 where a name begins with the text, 1 where it is elsewhere in it, None where it is not."""
    place = fold(name).find(fold(text))
    return None if place < 0 else min(place, 1)


def hosts_like(hosts: Iterable[HostName], text: str) -> list[HostName]:
    """Those that begin so first."""
    ranked = ((likeness(host, text), fold(host), host) for host in hosts)
    return [host for rank, _, host in sorted(r for r in ranked if r[0] is not None)]
