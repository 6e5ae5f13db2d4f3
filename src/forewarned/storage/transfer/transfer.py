"""A copy, from its first row to the comparison of both stores.

Each batch of rows is a transaction, so a copy that was broken off goes on after the last batch.
Invariant: no server opens a store that is not a whole copy, and a whole copy shows every VM the
incarnation that the VM last saw.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from forewarned.storage.errors import CannotOpenError
from forewarned.storage.transfer.tables import TABLES, Cells, Source, Table, Target

_BATCH: Final = 5_000

Progress = Callable[[str, int, int], None]
"""Called with what is being done, rows done and rows in all."""


class OccupiedTargetError(CannotOpenError):
    def __init__(self, where: str) -> None:
        super().__init__(f"{where} already contains a fleet or a history: copy into an empty store")


class ChangedSourceError(CannotOpenError):
    def __init__(self, source: str, target: str) -> None:
        super().__init__(
            f"{source} has changed since its copy to {target} was begun: add --restart to"
            " remove what has been copied and begin again"
        )


class DifferentCopyError(CannotOpenError):
    def __init__(self, where: str, table: str) -> None:
        super().__init__(
            f"table {table} of {where} differs from what was copied, so another program has"
            " written to one of the two: stop that program, and copy again with --restart"
        )
        self.table = table


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What a copy came to."""

    rows: dict[str, int]
    """By table."""
    was_resumed: bool


def copy(source: Source, target: Target, *, restart: bool, progress: Progress) -> Copied:
    """Raises StoreUnavailableError; then the target can be copied to again."""
    was_resumed = _begin(source, target, restart=restart)
    for table in TABLES:
        _copy_table(source, target, table, progress)
    rows = {table.name: _compare(source, target, table, progress) for table in TABLES}
    target.finish(last_number=source.last_number())
    return Copied(rows=rows, was_resumed=was_resumed)


def _begin(source: Source, target: Target, *, restart: bool) -> bool:
    """Whether an earlier copy is continued."""
    state, begun = source.state(), target.unfinished()
    if begun is not None and restart:
        target.empty()
        begun = None
    if begun is None:
        if any(target.last_key(table) is not None for table in TABLES if table.name != "notes"):
            # A server may have opened it and left notes, but no more.
            raise OccupiedTargetError(target.where)
        target.begin(state, offset=source.offset())
        return False
    if begun != state:
        raise ChangedSourceError(source.where, target.where)
    return True


def _copy_table(source: Source, target: Target, table: Table, progress: Progress) -> None:
    after, total = target.last_key(table), source.count(table)
    done = 0 if after is None else target.count(table)
    progress(f"copying {table.name}", done, total)
    while batch := source.rows(table, after, _BATCH):
        target.add(table, batch)
        after = batch[-1][: len(table.key)]
        done += len(batch)
        progress(f"copying {table.name}", min(done, total), total)


def _compare(source: Source, target: Target, table: Table, progress: Progress) -> int:
    """How many rows both have. Raises DifferentCopyError."""
    total = target.count(table)
    digests, counts = [], []
    for end in (source, target):
        digest, count = hashlib.blake2b(), 0
        for row in _all(end, table):
            digest.update(msgspec.json.encode(row))
            count += 1
            if not count % _BATCH:
                progress(f"comparing {table.name}", count, total)
        digests.append(digest.digest())
        counts.append(count)
    if digests[0] != digests[1]:
        raise DifferentCopyError(target.where, table.name)
    return counts[0]


def _all(end: Source, table: Table) -> Iterator[Cells]:
    after: Cells | None = None
    while batch := end.rows(table, after, _BATCH):
        yield from batch
        after = batch[-1][: len(table.key)]
