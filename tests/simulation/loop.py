"""An event loop in virtual time: when nothing is left to do, it is the time of the next timer.

Invariant: nothing outside can be waited for. There are no sockets, threads or signals, so the same
program does the same in each run. Callbacks run in the order in which they were asked for, as
asyncio promises: what may happen in any order is left to chance by what it waits for.
"""

import asyncio
from collections.abc import Callable
from math import ceil
from typing import Any, Final, TypeVarTuple

from typing_extensions import override

Ts = TypeVarTuple("Ts")

_MICROS: Final = 1_000_000
_SAME: Final = 1e-7
"""Seconds: floats that differ by less are the same microsecond."""


class NothingLeftError(Exception):
    """Everybody waits, and no timer is set: nothing would ever happen again."""


class _Selector:
    """Where a real loop waits for sockets."""

    def __init__(self) -> None:
        self.micros = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise NothingLeftError
        # Up, or the timer that is waited for would not be due yet.
        self.micros += ceil((timeout - _SAME) * _MICROS)
        return []

    def close(self) -> None:
        pass


class SimulatedLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector()
        self._clock_resolution = 2 * _SAME
        self.failures: list[dict[str, Any]] = []
        """What asyncio could tell nobody: exceptions of callbacks, and of tasks that are gone."""
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    @property
    def micros(self) -> int:
        """Since the loop was made."""
        return self._selector.micros

    @override
    def time(self) -> float:
        return self._selector.micros / _MICROS

    def _process_events(self, _: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    @override
    def run_in_executor(
        self, executor: object, func: Callable[[*Ts], Any], *args: *Ts
    ) -> "asyncio.Future[Any]":
        """At once, and in this thread."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # told to the caller
            done.set_exception(error)
        return done
