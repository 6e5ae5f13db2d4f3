"""What every store does alike with what is declared, however it keeps it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from notbefore.service.ports import GroupPlace
from notbefore.storage.delta import fold

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
