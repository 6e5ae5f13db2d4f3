"""Processor time of a server between two looks, finely enough for a single page.

What `usage` reads comes in ticks of 10 ms, and a page takes no more than that. The scheduler's own
account is in nanoseconds, but forgets a thread that ends: so each thread is looked at by itself.
"""

import contextlib
from pathlib import Path
from typing import Final

from benchmarks import usage

_PROC: Final = Path("/proc")


class Meter:
    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._before = self._look()

    def milliseconds(self) -> float:
        """Since the last time, or since the beginning."""
        before, self._before = self._before, self._look()
        return sum(spent - before.get(thread, 0.0) for thread, spent in self._before.items())

    def _look(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for pid in self._pids:
            for task in (_PROC / str(pid) / "task").iterdir():
                # It may end while it is looked at.
                with contextlib.suppress(OSError):
                    account = (task / "schedstat").read_text().split()
                    found[str(task)] = int(account[0]) / 1e6
        # Not every kernel keeps it.
        return found or {"all": usage.processor_seconds(self._pids) * 1e3}
