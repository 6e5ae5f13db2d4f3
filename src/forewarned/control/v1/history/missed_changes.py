"""What a watcher has missed while it was gone, from history, before it is told what happens.

Invariant: a page at a time, each read in a short transaction, so that a day of changes is neither
in memory at once nor a burden on the database.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from forewarned.control.v1 import wire
from forewarned.control.v1.changes import message
from forewarned.control.v1.shared_changes import told
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError, UnknownPositionError
from forewarned.service.listings import HistoryRow

_PAGE: Final = 500


class MissedChanges:
    def __init__(self, engine: Engine, *, since: str, upto: str, page: int = _PAGE) -> None:
        """Positions in history."""
        self._engine = engine
        self._since = since
        self._upto = upto
        self._page = page
        self._read: Sequence[HistoryRow] = ()
        self.is_told = False
        """Whether all of it was."""

    async def read(self) -> None:
        """The first page. Raises UnknownPositionError, StoreUnavailableError."""
        since, upto, page = self._since, self._upto, self._page
        self._read = await self._engine.ask(lambda s: s.history_between(since, upto, limit=page))

    async def messages(self) -> AsyncIterator[bytes]:
        """To be called once the first page is read."""
        try:
            while rows := self._read:
                # A watcher stays for hours after this.
                self._read = ()
                self._since = rows[-1].position
                if shown := await told(self._engine, rows):
                    yield b"".join(message(e.change.action, e.change, e.position) for e in shown)
                if len(rows) < self._page:
                    break
                await self.read()
            self.is_told = True
        except (StoreUnavailableError, UnknownPositionError) as error:
            farewell = wire.Farewell(message=f"{error}: reconnect to continue from here")
            yield message("dropped", farewell, self._since)
