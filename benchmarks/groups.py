"""Which rows there are, what measures them, and how long that may take."""

import contextlib
import signal
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.bench import Bench, NotOfferedError
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Verdict
from benchmarks.programs import MissingProgramError
from benchmarks.rows import (
    approvals,
    calm,
    cluster_approvals,
    cluster_console,
    cluster_due,
    cluster_import,
    cluster_polls,
    cluster_visible,
    console,
    crowds,
    due,
    instructions,
    million,
    polls,
    publishing,
    visible,
    waiting,
)
from benchmarks.started import StartError


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    rows: tuple[str, ...]
    measure: Callable[[Bench, Collection[str]], Iterator[Line]]
    minutes: float
    """after which it is given up"""


GROUPS: Final = (
    Group(rows=("P2b",), measure=crowds.measure, minutes=10),
    Group(rows=("P1", "P2"), measure=polls.measure, minutes=20),
    Group(rows=("P3",), measure=waiting.measure, minutes=5),
    Group(rows=("P6", "P4"), measure=million.measure, minutes=30),
    Group(rows=("P5",), measure=approvals.measure, minutes=10),
    Group(rows=("P7",), measure=visible.measure, minutes=5),
    Group(rows=("P8",), measure=due.measure, minutes=10),
    Group(rows=("P9",), measure=calm.measure, minutes=5),
    Group(rows=("P10",), measure=publishing.measure, minutes=10),
    Group(rows=("P11", "P12"), measure=console.measure, minutes=10),
    Group(rows=("C1", "C2"), measure=cluster_approvals.measure, minutes=15),
    Group(rows=("C3",), measure=cluster_visible.measure, minutes=10),
    Group(rows=("C4", "C5"), measure=cluster_polls.measure, minutes=20),
    Group(rows=("C6", "C7"), measure=cluster_due.measure, minutes=40),
    Group(rows=("C8", "C9"), measure=cluster_import.measure, minutes=25),
    Group(rows=("C10",), measure=cluster_console.measure, minutes=10),
    Group(rows=("budget",), measure=instructions.measure, minutes=10),
)
HEADLINE: Final = "P2b"
"""VMs as they really poll: what the service does nearly all the time."""
ROWS: Final = (
    HEADLINE,
    # P10 comes after P9.
    *sorted(
        (row for group in GROUPS for row in group.rows if row != HEADLINE),
        key=lambda row: (row[0], len(row), row),
    ),
)


FAMILIES: Final = {
    "server": tuple(row for row in ROWS if not row.startswith("C")),
    "nodes": tuple(row for row in ROWS if row.startswith("C")),
}
"""Rows that are kept together: a run of all of them takes the place of the last one."""


class OutOfTimeError(Exception):
    """A group took longer than it may."""


def measure(group: Group, bench: Bench, wanted: Collection[str]) -> list[Line]:
    """Lines of the group's rows. A row that can't be measured has a line that says why."""
    lines: list[Line] = []
    try:
        with _at_most(group.minutes):
            # One by one: lines before a failure are kept.
            deque(map(lines.append, group.measure(bench, wanted)), maxlen=0)
    except NotOfferedError as error:
        lines.extend(_without(lines, wanted, Verdict.NOT_OFFERED, str(error)))
    except MissingProgramError as error:
        lines.extend(_without(lines, wanted, Verdict.NOT_MEASURED, str(error)))
    except (BrokenExchangeError, StartError, OutOfTimeError) as error:
        lines.extend(_without(lines, wanted, Verdict.FAILED, str(error)))
    except Exception as error:  # noqa: BLE001  one row's defect must not cost the others' figures
        why = f"{type(error).__name__}: {error}"
        bench.say(traceback.format_exc())
        lines.extend(_without(lines, wanted, Verdict.FAILED, why))
    return lines


def _without(
    lines: Collection[Line], wanted: Collection[str], verdict: Verdict, why: str
) -> list[Line]:
    left = sorted(set(wanted) - {line.row for line in lines})
    # What fails after the last row's first line fails that row.
    rows = left or sorted(wanted)[-1:]
    return [Line(row=row, what="", verdict=verdict, note=why) for row in rows]


@contextlib.contextmanager
def _at_most(minutes: float) -> Iterator[None]:
    def give_up(_signal: int, _frame: object) -> None:
        raise OutOfTimeError(f"took more than {minutes:g} minutes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, minutes * 60)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
