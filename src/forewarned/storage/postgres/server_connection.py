"""A connection that is not waited on for ever, though its server says nothing and does not die.

A server that stands still keeps its connections: the kernel of its machine goes on acknowledging
what it is sent. So libpq would wait for an answer for as long as that lasts, and a standby that has
taken over meanwhile would never be looked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.rows import TupleRow
from typing_extensions import override

from forewarned.clock import monotonic_ns

T = TypeVar("T")


class ServerConnection(psycopg.Connection[TupleRow]):
    longest_silence: float | None = None
    """Seconds without a byte from the server after which it is lost; None for any number."""
    epoch = 0
    """Of the store, when it was connected."""
    _is_cut = False

    def cut(self) -> None:
        """Lose it, from any thread: callers that wait on it, or use it next, get an error."""
        self._is_cut = True

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Wait for the server however long it takes."""
        limit, self.longest_silence = self.longest_silence, None
        try:
            yield
        finally:
            self.longest_silence = limit

    # psycopg calls this for all that it waits for. Any: its further arguments differ by version.
    @override
    def wait(self, gen: PQGen[T], *others: Any, **named: Any) -> T:
        return super().wait(self._watched(gen), *others, **named)

    def _watched(self, gen: PQGen[T]) -> PQGen[T]:
        """The same, but it ends when the server has been silent for too long.

        psycopg goes on with it ten times a second even if there is nothing to read.
        """
        heard_at = monotonic_ns()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if self._is_cut:
                    raise self._lost("the database has moved to another server")
                if ready:
                    heard_at = monotonic_ns()
                elif self._is_silent_since(heard_at):
                    raise self._lost(f"no answer from the database in {self.longest_silence:g} s")
                wanted = gen.send(ready)
        except StopIteration as ended:
            result: T = ended.value
            return result
        except errors.FeatureNotSupported as error:
            # A newer node has migrated the tables of a prepared statement. A new session has none.
            raise self._lost(str(error)) from error

    def _is_silent_since(self, heard_at: int) -> bool:
        limit = self.longest_silence
        return limit is not None and monotonic_ns() - heard_at > limit * 1e9

    def _lost(self, why: str) -> psycopg.OperationalError:
        # An answer that comes later would be taken for that to another question.
        self.pgconn.finish()
        return psycopg.OperationalError(why)
