"""What is killed: a subject says what its process does, and judges what is left of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

Tell = Callable[[str], None]
"""Tells the process that watches. What was told before a kill arrives."""

ASKED: Final = "asked"
ACKED: Final = "acked"
REFUSED: Final = "refused"
"""Answered with an error that says that nothing has changed."""
UNKNOWN: Final = "unknown"
"""Answered with an error that says that it is not known."""
STOPPED: Final = "stopped"
"""The process ends, and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was wrong after a restart: nothing, if all of it is empty."""

    lost: Sequence[str] = ()
    """What was acknowledged, and is not there."""
    doubled: Sequence[str] = ()
    """What was done twice."""
    wrong: Sequence[str] = ()
    """What no one asked for, what was refused and is there, and whatever else may not be."""

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


class Life(Protocol):
    """One process of a subject, which may end at any moment."""

    pid: int
    dies_when_refused: bool
    """Whether it is to be killed as soon as anyone has been told what went wrong."""

    def told(self) -> list[str]:
        """All that it tells, until it ends or falls silent."""

    def lines(self) -> Sequence[str]:
        """What it has told so far, after waiting for more."""


class Subject(Protocol):
    name: str
    title: str
    """For the table."""

    def prepare(self, folder: Path) -> None:
        """Make what is there before the process starts."""

    def live(self, folder: Path, tell: Tell) -> None:
        """In the process that is killed. What it raises is an unclear end."""

    def attend(self, life: Life) -> list[str]:
        """What was told, and what else this process has seen of that one until its end."""

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:
        """Restart it, with nothing in its way."""


def those(told: Sequence[str], word: str) -> list[str]:
    """What was told with this word, without it."""
    return [line.removeprefix(f"{word} ") for line in told if line.startswith(f"{word} ")]


def refusals(told: Sequence[str]) -> list[str]:
    """What callers, or an operator, were told of something that went wrong."""
    return [line for line in told if line.startswith((REFUSED, STOPPED, UNKNOWN))]


def compare(told: Sequence[str], recovered: Sequence[str]) -> Verdict:
    """The law: acked ⊆ recovered ⊆ acked + what was asked and has no answer, and nothing twice."""
    asked, acked = those(told, ASKED), set(those(told, ACKED))
    unknown = {each.partition(":")[0] for each in those(told, UNKNOWN)}
    refused = {each.partition(":")[0] for each in those(told, REFUSED)} - acked - unknown
    return Verdict(
        lost=sorted(acked - set(recovered)),
        doubled=sorted({each for each in recovered if recovered.count(each) > 1}),
        wrong=[
            *(f"no one asked for it: {each}" for each in recovered if each not in asked),
            *(f"refused, and there: {each}" for each in recovered if each in refused),
        ],
    )
