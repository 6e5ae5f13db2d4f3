"""Activation: the first read of a document activates its scope, and 24 hours of silence end that.

Polls record the time of the read in memory only. It is written to the store when the scope is
woken, and every few minutes. After a crash the store may take a scope for silent a little too
early: the next poll activates it again.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from forewarned.core import lifecycle
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor
from forewarned.service.azure import inventory
from forewarned.service.azure.interfaces import equipment_of
from forewarned.service.engine import Engine
from forewarned.service.ports import Clock, Snapshot, Transaction
from forewarned.service.records import About, Caller

FLUSH_EVERY: Final = timedelta(minutes=5)
_READERS: Final = Actor(name="readers")


class _LastRead(NamedTuple):
    at: datetime
    by: ResourceName


class Readable(Protocol):
    """The part of a scope that says when it was last read."""

    @property
    def id(self) -> ScopeId: ...
    @property
    def last_read_at(self) -> datetime | None: ...


class Activation:
    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._seen: dict[ScopeId, datetime] = {}
        """Reads that are not in the store yet."""
        self._readers: dict[ScopeId, _LastRead] = {}
        """Shown to operators only, so a restart may forget them."""
        self._lacks_flush = False
        """Whether no flush is scheduled, so that the next read has to schedule one."""

    def seen(self, scope_id: ScopeId, reader: ResourceName) -> None:
        now = self._seen[scope_id] = self._clock.now()
        self._readers[scope_id] = _LastRead(now, reader)
        if self._lacks_flush:
            self._set_flush(now)

    async def activate(self, caller: Caller, *, address: str) -> None:
        by = Actor(name=f"vm:{caller.name}", address=address, resource=caller.name)

        def decision(tx: Transaction) -> datetime:
            scope = tx.load(caller.scope_id)
            # The VM may have been removed since its address was looked up.
            if caller.name not in scope.resources:
                raise UnknownResourceError(caller.name)
            tx.save(lifecycle.read(scope, at=tx.now), by=by)
            return tx.now

        at = await self._engine.decide(decision, touching=(caller.scope_id,))
        self._readers[caller.scope_id] = _LastRead(at, caller.name)

    async def about(self, name: ResourceName) -> About | None:
        return await self._engine.ask(lambda snapshot: self.about_in(snapshot, name))

    def about_in(self, snapshot: Snapshot, name: str) -> About | None:
        """By name, in any letter case."""
        machine = inventory.by_name(snapshot, name)
        if machine is None:
            return None
        return About(
            binding=machine.binding,
            resource=machine.resource,
            equipment=equipment_of(snapshot, machine),
        )

    def last_read(self, scope: Readable) -> datetime | None:
        """When a VM last read this scope's document, whether or not that is in the store yet."""
        seen = self._seen.get(scope.id)
        if seen is None or scope.last_read_at is None:
            return scope.last_read_at or seen
        return max(seen, scope.last_read_at)

    def last_reader(self, scope: Readable) -> ResourceName | None:
        """The VM that read it last; None if that was before this process started."""
        known = self._readers.get(scope.id)
        if known is None or (scope.last_read_at is not None and known.at < scope.last_read_at):
            return None
        return known.by

    def forget(self) -> None:
        """Forget all reads, like a process that has just started."""
        self._seen.clear()
        self._readers.clear()

    async def flush(self) -> None:
        """Write the times of reads to the store, so that a restart knows them."""
        marks = dict(self._seen)
        if not marks:
            return

        def decision(tx: Transaction) -> None:
            for scope_id, at in marks.items():
                scope = tx.load(scope_id)
                if scope.active and (scope.last_read_at is None or at > scope.last_read_at):
                    tx.save(lifecycle.read(scope, at=at), by=_READERS)

        await self._engine.decide(decision)
        for scope_id, at in marks.items():
            if self._seen.get(scope_id) == at:
                del self._seen[scope_id]

    def flush_regularly(self) -> None:
        """From now on, flush a few minutes after a read.

        Never without one: stepping the clock by years must not cause a million idle calls.
        """
        if self._seen:
            self._set_flush(self._clock.now())
        else:
            self._lacks_flush = True

    def _set_flush(self, now: datetime) -> None:
        async def flush() -> None:
            try:
                await self.flush()
            finally:
                self.flush_regularly()

        self._lacks_flush = False
        self._clock.at(now + FLUSH_EVERY, flush)
