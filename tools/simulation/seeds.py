"""Many seeds at once, each in one of several processes."""

import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from tests.simulation.simulation import Outcome, simulate

_BETWEEN_LINES: Final = 5.0
"""Seconds."""


def simulate_all(seeds: Sequence[int], *, days: float, parallel: int) -> Iterator[Outcome]:
    """As they come, with a line of progress now and then."""
    shown_at = time.monotonic()
    broken = 0
    # A copy of this process has what takes longest: all that is imported.
    with multiprocessing.get_context("fork").Pool(parallel) as pool:
        outcomes = pool.imap_unordered(partial(_simulate, days=days), seeds)
        for number, outcome in enumerate(outcomes, 1):
            broken += outcome.violation is not None
            if time.monotonic() - shown_at > _BETWEEN_LINES or number == len(seeds):
                shown_at = time.monotonic()
                line = f"{number}/{len(seeds)} seeds, {broken} violations"
                print(line, file=sys.stderr, flush=True)
            yield outcome


def _simulate(seed: int, *, days: float) -> Outcome:
    outcome = simulate(seed, days=days)
    # Stories of seeds that did no wrong are not worth sending.
    return outcome if outcome.violation else replace(outcome, story=())
