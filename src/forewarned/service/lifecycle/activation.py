"""Activation: the first read of a document activates its scope, and 24 hours of silence end that.

Polls record the time of a read in memory. The store is told of a scope's reads every half hour at
most. Invariant (I28): a scope that is read all the time is never
deactivated, whichever nodes its VMs read from, because the store's mark is never older than that.
A scope whose last reads were at another node, or before a restart, may be deactivated up to an hour
early: the next poll activates it again.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple, Protocol

from forewarned.core import lifecycle
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor
from forewarned.core.rules import Rules
from forewarned.service.azure import inventory
from forewarned.service.azure.models.interfaces import equipment_of
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.ports import Clock
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import About, Caller

MARKS: Final = 24
"""How often at least, in the silence that ends an activation, the reads of a scope that is read all
the time are noted in the store."""
BATCH: Final = 1000
"""Scopes that are marked in one transaction."""
_RETRY: Final = timedelta(minutes=1)
"""How long reads are kept from a store that was unavailable."""


class _LastRead(NamedTuple):
    at: datetime
    by: ResourceName
    mark_at: datetime
    """From when on the store is to be told of a read again."""


class Readable(Protocol):
    """The part of a scope that says when it was last read."""

    @property
    def id(self) -> ScopeId: ...
    @property
    def last_read_at(self) -> datetime | None: ...


class Activation:
    def __init__(self, engine: Engine, clock: Clock, rules: Rules) -> None:
        self._engine = engine
        self._clock = clock
        # Half of it, because a mark is not moved by less: what another node, or this one before a
        # restart, has noted a moment before a read is out of date by a step at the next.
        self._step = rules.silence / MARKS / 2
        self._reads: dict[ScopeId, _LastRead] = {}
        """Of this process alone."""
        self._unmarked: dict[ScopeId, datetime] = {}
        """Reads that the store is to be told of."""
        self._awaited: dict[ResourceName, Callable[[], None]] = {}
        """Who is to be told when these VMs read."""
        self._marking: asyncio.Task[None] | None = None
        """Tells it; None if there is nothing to tell."""

    def seen(self, scope_id: ScopeId, reader: ResourceName) -> None:
        if self._awaited and (told := self._awaited.pop(reader, None)) is not None:
            told()
        now, known = self._clock.now(), self._reads.get(scope_id)
        if known is not None and now < known.mark_at:
            self._reads[scope_id] = _LastRead(now, reader, known.mark_at)
            return
        self._reads[scope_id] = _LastRead(now, reader, now + self._step)
        self._unmarked[scope_id] = now
        if self._marking is None:
            self._marking = asyncio.create_task(self._mark())

    def await_read(self, reader: ResourceName, told: Callable[[], None]) -> None:
        """Tell once when this VM reads the document of its active scope the next time."""
        self._awaited[reader] = told

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
        self._reads[caller.scope_id] = _LastRead(at, caller.name, at + self._step)

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
        known = self._reads.get(scope.id)
        if known is None or scope.last_read_at is None:
            return scope.last_read_at if known is None else known.at
        return max(known.at, scope.last_read_at)

    def last_reader(self, scope: Readable) -> ResourceName | None:
        """The VM that read it last; None if that was before this process started."""
        known = self._reads.get(scope.id)
        if known is None or (scope.last_read_at is not None and known.at < scope.last_read_at):
            return None
        return known.by

    def forget(self) -> None:
        """Forget all reads, like a process that has just started."""
        self._reads.clear()
        self._unmarked.clear()

    async def finish(self) -> None:
        """Wait until the store has been told of the reads so far, as far as it has to be."""
        if self._marking is not None:
            await asyncio.wait([self._marking])

    async def _mark(self) -> None:
        # Those that are read meanwhile make up the next batch.
        try:
            while self._unmarked:
                batch = dict(islice(self._unmarked.items(), BATCH))
                await self._engine.mark_read(batch, older_by=self._step)
                for scope_id in batch:
                    self._unmarked.pop(scope_id, None)
        except StoreUnavailableError:
            for scope_id, at in self._unmarked.items():
                if (known := self._reads.get(scope_id)) is not None:
                    self._reads[scope_id] = known._replace(mark_at=at + _RETRY)
            self._unmarked.clear()
        finally:
            self._marking = None
