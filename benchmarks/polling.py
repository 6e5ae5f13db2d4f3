"""Processor time a poll costs a server, taken in alternating rounds."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks import usage
from benchmarks.exchange import BrokenExchangeError


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    pids: list[int]
    port: int


def cost(
    subject: Subject, load: Callable[[int], tuple[int, int]], *, idle: Mapping[str, float] = {}
) -> float:
    """Microseconds a poll. `load` polls a port, and says how often and how often in vain.

    `idle` is what a server takes without polls, as a share of a core: it is left out.
    """
    before, began = usage.processor_seconds(subject.pids), time.monotonic()
    polls, failed = load(subject.port)
    spent = usage.processor_seconds(subject.pids) - before
    spent -= idle.get(subject.name, 0) * (time.monotonic() - began)
    if failed > polls // 1000 or not polls:
        raise BrokenExchangeError(f"{subject.name}: {failed} of {polls} polls failed")
    return spent / polls * 1e6


def idle(subject: Subject, seconds: float) -> float:
    """The share of a core that a server takes while no VM polls."""
    before, began = usage.processor_seconds(subject.pids), time.monotonic()
    usage.wait(seconds)
    return (usage.processor_seconds(subject.pids) - before) / (time.monotonic() - began)


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
