"""Whether a series is flat: its last quarter is no higher than its first, give or take a limit.

Medians of quarters, not lines through all points: what goes up and down, as tables do between two
runs of vacuum, is flat if it comes back. What is before the beginning is left out: caches fill,
tables get their first rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

WARM_UP: Final = 1 / 5
"""The share of a run that is left out."""
LEAST_SAMPLES: Final = 20
"""With fewer, a quarter is too few to have a median worth the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a series of one kind may do."""

    share: float | None = 0.0
    """How much it may grow, of what it was; None if it may grow as it likes."""
    room: float = 0.0
    """It may grow by this in any case."""
    most: float | None = None
    """What it may never exceed; None if only growth counts."""
    least: float | None = None
    """What it has to reach in the end; None if it may stay at nothing."""
    unit: str = ""
    why: str

    def allowed(self, first: float) -> float | None:
        """How much a series may grow that was so much; None if that does not matter."""
        return None if self.share is None else max(first * self.share, self.room)


MB: Final = 1024**2
MAX_WAL: Final = 256 * MB
"""Bytes. PostgreSQL's default of a gigabyte is not filled in an hour, so it would show nothing."""
LIMITS: Final[Mapping[str, Limit]] = {
    "memory": Limit(
        share=0.05,
        room=2 * MB,
        unit="MB",
        why="Python and its allocator keep pages for later; a leak of 100 bytes an event or a poll"
        " would be more",
    ),
    "descriptors": Limit(
        room=5,
        why="requests that happen to be under way; each has one open, and closes it",
    ),
    "processor": Limit(
        share=0.25,
        room=0.03,
        unit="cores",
        why="of one core; more for the same work would be a search that takes longer and longer",
    ),
    "threads": Limit(room=1, why="threads are started once; one more may have been idle before"),
    "connections": Limit(room=2, why="a node opens one more for a listing, and closes it"),
    "wal": Limit(
        share=None,
        most=MAX_WAL,
        unit="MB",
        why="PostgreSQL removes what it no longer needs beyond max_wal_size",
    ),
    "table": Limit(
        share=0.10,
        room=0.5 * MB,
        unit="MB",
        why="with its indexes; between two runs of vacuum, rows of a minute or two lie dead. What"
        " small tables gain is found by counting rows",
    ),
    "rows": Limit(
        share=0.10,
        room=40,
        why="those of the retention, a little more or less by chance; and what history says of each"
        " removal, which is never removed",
    ),
    "dead rows": Limit(
        share=0.5,
        room=2_000,
        why="a saw: vacuum comes once a minute, to tables with a fifth of their rows dead",
    ),
    "queue": Limit(room=50, why="what arrives in a few seconds, and leaves again"),
    "refused": Limit(
        share=None,
        most=0.01,
        why="with 503, of all requests: what a node answers that has not heard from the database"
        " for a second, as happens where others use the machine",
    ),
    "failed": Limit(share=None, most=0.0001, why="otherwise, of all requests"),
    "removed": Limit(share=None, least=1, why="retention is at work"),
}
"""By kind. Others are not judged: how long requests take depends on what else the machine does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    series: str
    first: float
    """The median of the first quarter."""
    last: float
    highest: float
    fault: str = ""
    """What is wrong; empty if nothing is."""

    @property
    def kind(self) -> str:
        return self.series.partition("/")[0]

    @property
    def growth(self) -> float:
        """As a share of the first quarter."""
        return (self.last - self.first) / self.first if self.first else float(self.last > 0)


def judged(samples: Sequence[Mapping[str, float]]) -> list[Verdict]:
    """Of each series that has a limit. None if there are too few samples to say."""
    if len(samples) < LEAST_SAMPLES:
        return []
    kept = samples[round(len(samples) * WARM_UP) :]
    # A table that was empty, or a process that was not there, is in later samples only.
    names = sorted({name for each in kept for name in each})
    return [
        verdict(name, [each.get(name, 0.0) for each in kept], limit)
        for name in names
        if (limit := LIMITS.get(name.partition("/")[0])) is not None
    ]


def verdict(series: str, values: Sequence[float], limit: Limit) -> Verdict:
    """`values` begin after the warm-up."""
    quarter = max(1, len(values) // 4)
    first, last = median(values[:quarter]), median(values[-quarter:])
    return Verdict(
        series=series,
        first=first,
        last=last,
        highest=max(values),
        fault="; ".join(_faults(values, first, last, limit)),
    )


def _faults(values: Sequence[float], first: float, last: float, limit: Limit) -> Iterator[str]:
    allowed = limit.allowed(first)
    if allowed is not None and last - first > allowed:
        yield "it has grown"
    if limit.most is not None and max(values) > limit.most:
        yield "it was above its limit"
    if limit.least is not None and values[-1] < limit.least:
        yield "nothing was removed"
