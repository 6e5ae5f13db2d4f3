"""Processor time a poll costs a server, taken in alternating rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks import usage
from benchmarks.exchange import BrokenExchangeError


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    pids: list[int]
    port: int


def cost(subject: Subject, load: Callable[[int], tuple[int, int]]) -> float:
    """Microseconds a poll. `load` polls a port, and says how often and how often in vain."""
    before = usage.processor_seconds(subject.pids)
    polls, failed = load(subject.port)
    spent = usage.processor_seconds(subject.pids) - before
    if failed > polls // 1000 or not polls:
        raise BrokenExchangeError(f"{subject.name}: {failed} of {polls} polls failed")
    return spent / polls * 1e6


def alternate(
    subjects: Sequence[Subject], rounds: int, measure: Callable[[Subject], float]
) -> dict[str, list[float]]:
    """One figure a round for each, after a round that warms all of them up and is thrown away.

    Who comes first changes from round to round, so that none has the quiet moments.
    """
    figures: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for number in range(rounds + 1):
        turn = number % len(subjects)
        for subject in (*subjects[turn:], *subjects[:turn]):
            figure = measure(subject)
            if number:
                figures[subject.name].append(figure)
    return figures
