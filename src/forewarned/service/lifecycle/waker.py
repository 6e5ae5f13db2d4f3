"""The Waker: starts events whose NotBefore has come, and deactivates scopes no VM reads any more.

One timer for the earliest wake of all scopes. Waking a scope twice changes nothing, so it does not
matter whether another process has woken it already.
"""

import logging
from datetime import datetime, timedelta
from typing import Final

from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.model import TIME, Scope
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine, save
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.lifecycle.ports import Clock, Timer
from forewarned.service.ports import Observer, Transaction
from forewarned.service.records import Commit

_log = logging.getLogger(__name__)

BATCH: Final = 1000
"""Scopes in one transaction, which blocks other writes for about a tenth of a second."""
SHARED_BATCH: Final = 100
"""Where nodes share a store: one that stops holds so many scopes for seconds."""
_RETRY: Final = timedelta(seconds=1)


class Waker:
    def __init__(
        self,
        engine: Engine,
        reading: Activation,
        rules: Rules,
        clock: Clock,
        observer: Observer | None = None,
        *,
        batch: int = BATCH,
    ) -> None:
        self._engine = engine
        self._reading = reading
        self._rules = rules
        self._clock = clock
        self._observer = observer
        self._batch = batch
        self._set_for: datetime | None = None
        self._timer: Timer | None = None
        self._retry_at: datetime | None = None
        """When what failed is tried again; None if it did not fail."""

    def hear(self, commit: Commit) -> None:
        self.set(commit.next_wake)

    def set(self, instant: datetime | None) -> None:
        """Wake at this instant, and at no other; after a failure not before it is tried again."""
        if instant is not None and self._retry_at is not None:
            # What is due stays due, and may be told again and again meanwhile.
            instant = max(instant, self._retry_at)
        if instant == self._set_for:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._set_for = instant
        self._timer = None if instant is None else self._clock.at(instant, self._wake)

    async def _wake(self) -> None:
        if self._observer is not None and self._set_for is not None:
            self._observer.woke(self._clock.now() - self._set_for)
        self._set_for = self._timer = self._retry_at = None
        try:
            while await self._engine.decide(self._wake_due) == self._batch:
                pass
        except StoreUnavailableError:
            _log.warning("the store is unavailable: nothing starts until it is back")
            self._retry()
        except Exception:
            # What is due stays due, whatever went wrong.
            self._retry()
            raise

    def _retry(self) -> None:
        self._retry_at = self._clock.now() + _RETRY
        self.set(self._retry_at)

    def _wake_due(self, tx: Transaction) -> int:
        due = tx.claim_due(self._batch)
        tx.load_all(due)
        for scope_id in due:
            # Loaded again: waking one scope may have changed another.
            save(tx, self._woken(tx.load(scope_id), now=tx.now), by=TIME)
        return len(due)

    def _woken(self, scope: Scope, *, now: datetime) -> Change:
        change = Change(scope=scope)
        # The store's mark may be an hour behind. What this process knows better is written first.
        last_read_at = self._reading.last_read(scope)
        if scope.active and last_read_at is not None and last_read_at != scope.last_read_at:
            change = lifecycle.read(scope, at=last_read_at)
        return change.plus(lifecycle.wake(change.scope, rules=self._rules, now=now))
