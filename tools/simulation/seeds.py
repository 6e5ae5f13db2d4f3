"""Many seeds at once, each in one of several processes."""

import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from tests.simulation.simulation import Outcome, simulate


def simulate_all(seeds: Sequence[int], *, days: float, parallel: int) -> Iterator[Outcome]:
    """As they come."""
    # A copy of this process has what takes longest: all that is imported.
    with multiprocessing.get_context("fork").Pool(parallel) as pool:
        yield from pool.imap_unordered(partial(_simulate, days=days), seeds)


def _simulate(seed: int, *, days: float) -> Outcome:
    outcome = simulate(seed, days=days)
    # Stories of seeds that did no wrong are not worth sending.
    return outcome if outcome.violation else replace(outcome, story=())
