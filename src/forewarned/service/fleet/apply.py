"""The fleet: bringing it to a plan, and showing it.

Invariant: a plan that is refused has changed nothing. A small one is applied in
one transaction; a large one is compared with the whole fleet first, and then written in steps.
"""

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor, Scope
from forewarned.service.engine import Engine
from forewarned.service.fleet.comparison import Comparison, Present, compare
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.fleet.digest import digest
from forewarned.service.fleet.writes import (
    Applied,
    Step,
    carry_out,
    mixed_scopes,
    refuse_shared_hosts,
    steps,
    total,
)
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.ports import Lease, Snapshot, Transaction
from forewarned.service.records import Binding
from forewarned.service.sources.notes import source_states

T = TypeVar("T")

__all__ = ["Applied", "Fleet", "Network", "Progress", "ScopeView"]

LARGE: Final = 10_000
"""VMs above which a plan is written in steps: the store may be held for about a second at most."""
SHARED_LARGE: Final = 1_000
"""Where nodes share a store: it takes longer, and callers wait ten seconds for one transaction."""

FLEET_LEASE: Final = "fleet"
"""Held while a plan or a listing is compared with the fleet and written."""

_APPLIED: Final = "fleet applied"
_REST: Final = 20
"""Steps, so 10,000 VMs: few enough to be looked through for garbage in milliseconds."""

Progress = Callable[[int, int], None]
"""Hears how many VMs of how many are done."""


def unheard(done: int, total: int) -> None:
    """For callers that do not follow the progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeView:
    """A scope with the bindings of its VMs, for operators to look at."""

    scope: Scope
    bindings: tuple[Binding, ...]
    last_read_by: ResourceName | None = None
    """None if no VM has read, or if that was before this server started."""


class Fleet:
    def __init__(
        self, engine: Engine, reading: Activation, address_range: Network, *, large: int = LARGE
    ) -> None:
        """VMs that a plan gives no address get one of the range, unless it brings its own.

        Plans of more than `large` VMs are written in steps.
        """
        self._engine = engine
        self._reading = reading
        self._address_range = address_range
        self._large = large
        self._under_way: set[asyncio.Task[Applied | None]] = set()

    async def apply(
        self,
        plan: FleetPlan,
        *,
        by: Actor,
        prune: bool = False,
        progress: Progress = unheard,
    ) -> Applied:
        """Add what is missing and change what differs; with `prune`, remove what is not planned.

        What has begun goes on, even if the caller gives up waiting.
        """
        applied = await self._to_the_end(_Order(plan=plan, by=by, prune=prune, progress=progress))
        assert applied is not None  # noqa: S101  # an order without a digest is never passed over
        return applied

    async def apply_once(self, plan: FleetPlan, *, by: Actor) -> Applied | None:
        """Apply a plan, unless it is the one that was last applied this way: then None.

        A restart with the same fleet file must not bring back VMs that were terminated since.
        """
        return await self._to_the_end(_Order(plan=plan, by=by, digest=digest(plan)))

    async def applied_once(self) -> Callable[[FleetPlan], bool]:
        """Recognises the plan that `apply_once` applied last, which has no mistakes."""
        last = await self._engine.ask(lambda snapshot: snapshot.note(_APPLIED))
        return lambda plan: digest(plan) == last

    async def show(self) -> list[ScopeView]:
        views = await self._engine.ask(
            lambda snapshot: _views(
                [saved.scope for saved in snapshot.scopes()], list(snapshot.bindings())
            )
        )
        return [self.with_last_read(view) for view in views]

    async def show_scope(self, scope_id: ScopeId) -> ScopeView:
        """Raises UnknownScopeError."""
        return self.with_last_read(await self._engine.ask(lambda s: _view(s, scope_id)))

    async def _to_the_end(self, order: "_Order") -> Applied | None:
        under_way = asyncio.ensure_future(self._carry_out(order))
        self._under_way.add(under_way)
        under_way.add_done_callback(self._under_way.discard)
        return await asyncio.shield(under_way)

    async def _carry_out(self, order: "_Order") -> Applied | None:
        # No other plan may change the fleet between the comparison with this one and its writing.
        async with self._engine.lease(FLEET_LEASE) as lease:
            if await self._is_large(order):
                return await self._apply_in_steps(order, lease)
            size = order.plan.size()
            order.progress(0, size)
            apply_at_once = partial(self._apply_at_once, order=order, lease=lease)
            applied = await self._engine.decide(apply_at_once)
            order.progress(size, size)
            return applied

    async def _is_large(self, order: "_Order") -> bool:
        if order.plan.size() > self._large or not order.prune:
            return order.plan.size() > self._large
        limit = self._large
        # Removing takes as long as adding.
        return await self._engine.ask(lambda s: len(list(islice(s.places(), limit + 1))) > limit)

    def _apply_at_once(self, tx: Transaction, *, order: "_Order", lease: Lease) -> Applied | None:
        lease.check(tx)
        if order.digest is not None:
            if tx.note(_APPLIED) == order.digest:
                return None
            tx.put_note(_APPLIED, order.digest)
        made = steps(self._compare(order, _present(tx, order)))
        return total([carry_out(tx, step, by=order.by) for step in made])

    async def _apply_in_steps(self, order: "_Order", lease: Lease) -> Applied | None:
        last = await self._engine.ask(lambda snapshot: snapshot.note(_APPLIED))
        if order.digest is not None and last == order.digest:
            return None
        present = await self._engine.ask(partial(_present, order=order))
        # On a thread, as is everything that takes seconds for a million VMs: others are answered.
        comparison = await asyncio.to_thread(self._compare, order, present)
        del present
        mixed = mixed_scopes(comparison)
        while (some := await asyncio.to_thread(next, mixed, None)) is not None:
            refuse = partial(refuse_shared_hosts, planned=some, comparison=comparison)
            await self._engine.ask(refuse)
        done = 0
        applied: list[Applied] = []
        order.progress(done, comparison.work)
        async with aclosing(_made_ahead(enumerate(steps(comparison)))) as made:
            async for number, step in made:
                carry_out_step = partial(_carry_out_step, step=step, by=order.by, lease=lease)
                applied.append(await self._engine.decide(carry_out_step))
                done += step.work
                order.progress(done, comparison.work)
                if number % _REST == 0:
                    # These VMs stay in memory for good. Collecting garbage among more and more of
                    # them would stop everything for up to a second each time.
                    gc.freeze()
        if order.digest is not None:
            # Last: if the server stops on the way, the next start goes on with it.
            await self._engine.decide(partial(_note_applied, digest=order.digest, lease=lease))
        return total(applied)

    def _compare(self, order: "_Order", present: Present) -> Comparison:
        return compare(order.plan, present, address_range=self._address_range, prune=order.prune)

    def with_last_read(self, view: ScopeView) -> ScopeView:
        """A view from the store, with the reads that are not in the store yet."""
        last = self._reading.last_read(view.scope)
        return replace(
            view,
            scope=replace(view.scope, last_read_at=last),
            last_read_by=self._reading.last_reader(view.scope),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    plan: FleetPlan
    by: Actor
    prune: bool = False
    progress: Progress = unheard
    digest: str | None = None
    """Of a plan that is to be applied once; None for others."""


async def _made_ahead(parts: Iterator[T]) -> AsyncGenerator[T, None]:
    """Each is made on a thread, while the caller waits for the disk with the one before."""
    coming = asyncio.ensure_future(asyncio.to_thread(next, parts, None))
    try:
        while (part := await coming) is not None:
            coming = asyncio.ensure_future(asyncio.to_thread(next, parts, None))
            yield part
    finally:
        await asyncio.wait([coming])


def _carry_out_step(tx: Transaction, *, step: Step, by: Actor, lease: Lease) -> Applied:
    lease.check(tx)
    return carry_out(tx, step, by=by)


def _present(snapshot: Snapshot, order: "_Order") -> Present:
    places = list(snapshot.places())
    # What a source lists is not the plan's to remove. Most fleets have none to look for.
    if not order.prune or not source_states(snapshot):
        return Present(places)
    listed = (each.name for each in snapshot.bindings() if each.profile.source)
    return Present(places, frozenset(name.casefold() for name in listed))


def _note_applied(tx: Transaction, *, digest: str, lease: Lease) -> None:
    lease.check(tx)
    tx.put_note(_APPLIED, digest)


def _view(snapshot: Snapshot, scope_id: ScopeId) -> ScopeView:
    scope = snapshot.load(scope_id)
    bindings = (snapshot.binding(name) for name in scope.resources)
    return ScopeView(scope=scope, bindings=tuple(b for b in bindings if b is not None))


def _views(scopes: list[Scope], bindings: list[Binding]) -> list[ScopeView]:
    by_scope: dict[ScopeId, list[Binding]] = {}
    for binding in bindings:
        by_scope.setdefault(binding.scope_id, []).append(binding)
    return [ScopeView(scope=scope, bindings=tuple(by_scope.get(scope.id, ()))) for scope in scopes]
