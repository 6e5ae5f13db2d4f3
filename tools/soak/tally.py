"""What clients have seen: how often, how long it took, what went wrong, which laws were broken."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import percentile
from tools.soak.requests import RefusedError

_MOST: Final = 20
"""Broken laws that are told: the first few say it all."""


class Tally:
    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        """By what was tried, and why it was not done."""
        self.broken: list[str] = []
        self._took: defaultdict[str, list[float]] = defaultdict(list)
        """Seconds, since `seconds` was last asked for."""

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Note how long the block takes, or that it failed because a server would not."""
        began = time.monotonic()
        try:
            yield
        except RefusedError as error:
            self.failed[f"{what}: {error.status}"] += 1
            return
        except BrokenExchangeError as error:
            self.failed[f"{what}: {error}"] += 1
            return
        self.done[what] += 1
        self._took[what].append(time.monotonic() - began)

    def broke(self, law: str) -> None:
        if len(self.broken) < _MOST:
            self.broken.append(law)

    @property
    def refusals(self) -> int:
        """Requests that a node did not take at that moment: who sent one tries again."""
        return sum(number for why, number in self.failed.items() if why.endswith(": 503"))

    @property
    def failures(self) -> int:
        """Those that failed otherwise."""
        return self.failed.total() - self.refusals

    def p99(self, what: str) -> float:
        """In milliseconds, of what was done since this was last asked; 0 if there was nothing."""
        took = self._took.pop(what, [])
        return percentile(took, 99) * 1000 if took else 0.0
