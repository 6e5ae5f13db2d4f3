"""Compares history with its chain, and names what is wrong: `forewarned history verify`.

Reads page by page, each in a short transaction of its own, so that a server may run meanwhile.

Each entry is checked against the digest that is stored before it. So one wrong entry does not make
all after it look wrong, and what is wrong can be named.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import permutations
from typing import Any, Final, NamedTuple

from typing_extensions import override

from forewarned.storage.history import removal
from forewarned.storage.history.digest import COLUMNS, GENESIS, link
from forewarned.storage.relational.database import Database
from forewarned.storage.rows import FoundRow, micros

_PAGE: Final = 2_000
_MOST_COMPARED: Final = 100
"""Wrong rows that are looked at for swaps: every one of them is compared with every other."""
_DISORDER: Final = micros(timedelta(minutes=1))
"""Transactions last seconds: a row is chained no later than this after one with a later number."""
_LAST: Final = 2**63 - 1
_ROWS: Final = ", ".join(f"history.{name}" for name in COLUMNS)
_ENTRIES: Final = f"""
    SELECT history_chain.number, history_chain.history_id, history_chain.digest, {_ROWS}
    FROM history_chain LEFT JOIN history ON history.id = history_chain.history_id
    WHERE history_chain.number > ? AND history_chain.number <= ?
    ORDER BY history_chain.number LIMIT ?
"""
_UNCHAINED: Final = f"""
    SELECT {_ROWS} FROM history
    WHERE id > ? AND NOT EXISTS (SELECT 1 FROM history_chain WHERE history_id = history.id)
    ORDER BY id LIMIT ?
"""

Progress = Callable[[int, int], None]
"""How many entries have been checked, and of how many."""
# A row outlives its page: the values of its columns.
Content = Mapping[str, Any]


class Kind(StrEnum):
    EDITED = "edited"
    REMOVED = "removed"
    INSERTED = "inserted"
    SWAPPED = "swapped"
    CHAIN_CHANGED = "chain_changed"
    CHAIN_REMOVED = "chain_removed"
    HEAD_REMOVED = "head_removed"
    HEAD_DIFFERS = "head_differs"


class Finding(NamedTuple):
    kind: Kind
    number: int
    """Of the chain; 0 for a row that has none."""
    row: int | None
    """The number of the row of history, as `forewarned history` shows it; None if not known."""
    message: str


class Head(NamedTuple):
    """A place in the chain, for someone to keep who can't be talked into changing it."""

    number: int
    digest: str

    @override
    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"


@dataclass(slots=True)
class Verified:
    checked: int = 0
    """Rows that the chain has, and that are as they were chained."""
    unchained: int = 0
    """Rows that are not chained yet: those of the last second, or of a server that was killed."""
    removed: int = 0
    """Rows that retention has removed."""
    head: Head = field(default_factory=lambda: Head(0, GENESIS))
    findings: list[Finding] = field(default_factory=list)


def verify(database: Database, head: Head | None, progress: Progress) -> Verified:
    """`head` is one that was printed before; None to compare with none."""
    audit = _Audit(database, head)
    audit.run(progress)
    return audit.verified


def parse_head(text: str) -> Head:
    """Raises ValueError."""
    number, _, digest = text.strip().partition(":")
    if not number.isascii() or not number.isdigit() or len(digest) != len(GENESIS):
        raise ValueError(
            f"{text!r} is not a head: give NUMBER:DIGEST as 'forewarned history verify' prints it"
        )
    return Head(int(number), digest.lower())


@dataclass(slots=True)
class _Entry:
    number: int
    previous: str
    """The digest that is stored before it."""
    digest: str
    content: Content

    @property
    def is_right(self) -> bool:
        return link(self.previous, self.content) == self.digest

    @property
    def row(self) -> int:
        return int(self.content["id"])


class _Audit:
    def __init__(self, database: Database, head: Head | None) -> None:
        self._database = database
        self._wanted = head
        self._digest: str | None = GENESIS
        """Of the entry before; None where it is missing."""
        self._number = 0
        self._wrong: list[_Entry] = []
        self._doubted: _Entry | None = None
        """The entry before, if it is wrong: the next one shows which of the two is."""
        self._newest_at = self._newest_id = 0
        self._gone_up_to = 0
        """The last number whose row retention has removed, as the chain has it."""
        self._said_gone = 0
        """The same, as history says it."""
        self.verified = Verified()

    def run(self, progress: Progress) -> None:
        [[last]] = self._database.ask("SELECT coalesce(max(number), 0) FROM history_chain")
        progress(0, last)
        for row in self._entries(0, last):
            self._take(row)
            if not row["number"] % _PAGE:
                progress(row["number"], last)
        self._settle_doubt(None)
        progress(last, last)
        self._look_at_unchained()
        self._name_wrong()
        if self._gone_up_to > self._said_gone:
            # Retention may have begun meanwhile: what says so may be chained by now.
            for row in self._entries(self._number, _LAST):
                self._note_removal(row)
        if self._gone_up_to > self._said_gone:
            self._find(
                Kind.REMOVED,
                self._gone_up_to,
                None,
                f"the row of chain number {self._gone_up_to} is marked as removed by retention,"
                f" but history says that retention removed rows up to number {self._said_gone}",
            )
        if self._wanted is not None and self._wanted.number > self._number:
            self._find(
                Kind.CHAIN_REMOVED,
                self._number + 1,
                None,
                f"the chain ends at number {self._number}, and the given head is number"
                f" {self._wanted.number}: the rows in between were removed, or this is an older"
                " copy",
            )
        self.verified.findings.sort(key=lambda found: found.number or self._number + 1)

    def _entries(self, after: int, last: int) -> Iterator[FoundRow]:
        while page := self._database.ask(_ENTRIES, (after, last, _PAGE)):
            yield from page
            after = page[-1]["number"]

    def _take(self, row: FoundRow) -> None:
        number, digest = row["number"], row["digest"]
        self._bridge(number, is_marker=row["history_id"] is None)
        if row["history_id"] is None:
            self._settle_doubt(None)
            self._gone_up_to = number
            self.verified.removed += 1
        elif row["id"] is None:
            self._settle_doubt(None)
            self._find(
                Kind.REMOVED, number, row["history_id"], f"row {row['history_id']} was removed"
            )
        elif self._digest is not None:
            content = {name: row[name] for name in COLUMNS}
            self._check(_Entry(number, self._digest, digest, content))
        # Else there is no digest before it, and nothing can be said of it.
        self._compare_head(number, digest)
        self._digest, self._number = digest, number
        self.verified.head = Head(number, digest)

    def _bridge(self, number: int, *, is_marker: bool) -> None:
        """From the entry before to this one, if numbers are missing in between."""
        missing = range(self._number + 1, number)
        if not missing:
            return
        self._settle_doubt(None)
        self._digest = None
        if is_marker:
            # Retention keeps the last of those that it has removed in a row.
            self.verified.removed += len(missing)
            if self._wanted is not None and self._wanted.number in missing:
                self._find(
                    Kind.HEAD_REMOVED,
                    self._wanted.number,
                    None,
                    f"retention has removed number {self._wanted.number} of the chain, so the given"
                    " head can't be compared: give the head of a later verification",
                )
            return
        told = (
            f"number {missing[0]} of the chain was removed, perhaps together with its row"
            if len(missing) == 1
            else f"numbers {missing[0]} to {missing[-1]} of the chain were removed, perhaps"
            " together with their rows"
        )
        self._find(
            Kind.CHAIN_REMOVED,
            missing[0],
            None,
            f"{told}, so number {number} can't be checked",
        )

    def _check(self, entry: _Entry) -> None:
        self._settle_doubt(entry)
        if entry.is_right:
            self.verified.checked += 1
            self._note(entry.content, number=entry.number)
        else:
            self._doubted = entry

    def _settle_doubt(self, following: _Entry | None) -> None:
        """The entry before was wrong: if its digest was changed, the next one shows the old one."""
        doubted, self._doubted = self._doubted, None
        if doubted is None:
            return
        right = link(doubted.previous, doubted.content)
        if following is not None and link(right, following.content) == following.digest:
            following.previous = right
            self._find(
                Kind.CHAIN_CHANGED,
                doubted.number,
                doubted.row,
                f"the digest at number {doubted.number} of the chain was changed; row"
                f" {doubted.row} itself was not",
            )
            self.verified.checked += 1
            self._note(doubted.content, number=doubted.number)
            return
        self._wrong.append(doubted)

    def _note(self, row: "FoundRow | Content", *, number: int) -> None:
        """A row that is as it was written, in the order of the chain; number 0: not chained."""
        self._note_removal(row)
        if row["id"] < self._newest_id and row["at"] < self._newest_at - _DISORDER:
            self._find(
                Kind.INSERTED,
                number,
                row["id"],
                f"row {row['id']} was inserted: it came after row {self._newest_id}, and its time"
                " is more than a minute earlier",
            )
        if row["id"] > self._newest_id:
            # Its own time, which may be before that of earlier rows: clocks are put back.
            self._newest_id, self._newest_at = row["id"], row["at"]

    def _note_removal(self, row: "FoundRow | Content") -> None:
        if row["action"] == removal.REMOVED:
            self._said_gone = max(self._said_gone, removal.number_of(row["cause"]))

    def _compare_head(self, number: int, digest: str) -> None:
        wanted = self._wanted
        if wanted is not None and wanted.number == number and wanted.digest != digest:
            self._find(
                Kind.HEAD_DIFFERS,
                number,
                None,
                f"number {number} of the chain is not what the given head says: the chain was"
                " rewritten, or this is another store",
            )

    def _look_at_unchained(self) -> None:
        after: int | None = None
        while page := self._unchained_after(after):
            for row in page:
                self.verified.unchained += 1
                self._note(row, number=0)
            after = page[-1]["id"]

    def _unchained_after(self, after: int | None) -> Sequence[FoundRow]:
        first = -(2**63) if after is None else after
        return self._database.ask(_UNCHAINED, (first, _PAGE))

    def _name_wrong(self) -> None:
        left = {entry.number: entry for entry in self._wrong}
        if len(left) <= _MOST_COMPARED:
            for one, other in permutations(self._wrong, 2):
                if one.number < other.number and one.number in left and _are_swapped(one, other):
                    left.pop(one.number)
                    left.pop(other.number, None)
                    self._find(
                        Kind.SWAPPED,
                        one.number,
                        one.row,
                        f"rows {one.row} and {other.row} were swapped",
                    )
        for entry in left.values():
            message = f"row {entry.row} was edited"
            if entry.number == self._number:
                # No later entry shows which of the two it was.
                message = (
                    f"row {entry.row} or its digest was edited: number {entry.number} is the last"
                    " of the chain, so nothing shows which"
                )
            self._find(Kind.EDITED, entry.number, entry.row, message)

    def _find(self, kind: Kind, number: int, row: int | None, message: str) -> None:
        self.verified.findings.append(Finding(kind, number, row, message))


def _are_swapped(one: _Entry, other: _Entry) -> bool:
    """Whether each of two wrong entries is right with the other's row, or with what is in it."""
    for mine, theirs in (
        (other.content, one.content),
        ({**other.content, "id": one.row}, {**one.content, "id": other.row}),
    ):
        if link(one.previous, mine) == one.digest and link(other.previous, theirs) == other.digest:
            return True
    return False
