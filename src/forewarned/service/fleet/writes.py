"""What applying a plan writes: steps, each small enough for one transaction among others.

A step may be run again when a race is lost, so it keeps nothing. All steps of a plan are to be
carried out in order: what has to make way does so before those it makes way for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from forewarned.core import lifecycle, membership
from forewarned.core.change import Change
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor, Scope
from forewarned.core.transitions import ResourceAdded, ResourceChanged
from forewarned.service.engine import save
from forewarned.service.errors import HostSharedError
from forewarned.service.fleet.comparison import Comparison
from forewarned.service.fleet.placement import PlannedScope
from forewarned.service.ports import Snapshot, Transaction

T = TypeVar("T")

STEP: Final = 500
"""VMs in a step. Approvals wait while one is written, some tenths of a second at worst, and VMs
are told of one at a time; a disk's own wait, a few milliseconds, is small beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    gone: tuple[tuple[ScopeId, tuple[ResourceName, ...]], ...] = ()
    released: tuple[ResourceName, ...] = ()
    planned: tuple[PlannedScope, ...] = ()

    @property
    def work(self) -> int:
        """In VMs, as `Comparison.work` counts them."""
        gone = sum(len(names) for _, names in self.gone)
        return gone + sum(len(each.bindings) for each in self.planned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What applying a plan did to VMs, by name."""

    added: tuple[ResourceName, ...] = ()
    changed: tuple[ResourceName, ...] = ()
    removed: tuple[ResourceName, ...] = ()
    unchanged: int = 0


def total(parts: Sequence[Applied]) -> Applied:
    return Applied(
        added=tuple(name for each in parts for name in each.added),
        changed=tuple(name for each in parts for name in each.changed),
        removed=tuple(name for each in parts for name in each.removed),
        unchanged=sum(each.unchanged for each in parts),
    )


def steps(comparison: Comparison) -> Iterator[Step]:
    """Made one at a time: only the VMs of one step are in memory."""
    for gone in _batches(comparison.gone.items(), lambda each: len(each[1])):
        yield Step(gone=gone)
    for released in _batches(comparison.released, lambda _: 1):
        yield Step(released=released)
    for planned in _batches(comparison.expansion.scopes(), lambda each: len(each.bindings)):
        yield Step(planned=planned)


def carry_out(tx: Transaction, step: Step, *, by: Actor) -> Applied:
    tx.load_all([scope_id for scope_id, _ in step.gone])
    removed = [name for scope_id, names in step.gone for name in _remove(tx, scope_id, names, by)]
    for name in step.released:
        if (former := tx.binding(name)) is not None:
            tx.bind(replace(former, address=""))
    return replace(_enroll(tx, step.planned, by=by), removed=tuple(removed))


def mixed_scopes(comparison: Comparison) -> Iterator[tuple[PlannedScope, ...]]:
    """Scopes to check with `refuse_shared_hosts`, in batches of the size of a step."""
    if comparison.mixed:
        mixed = comparison.expansion.scopes(only=comparison.mixed)
        yield from _batches(mixed, lambda each: len(each.bindings))


def refuse_shared_hosts(
    snapshot: Snapshot, planned: Iterable[PlannedScope], comparison: Comparison
) -> None:
    """Raises HostSharedError if VMs of two update domains of a scope would share a host."""
    for plan in planned:
        scope = snapshot.load(plan.scope.id)
        gone = frozenset(comparison.gone.get(scope.id, ()))
        staying = {name: vm for name, vm in scope.resources.items() if name not in gone}
        change = _enrolled(replace(scope, resources=staying), plan, now=snapshot.now)
        _refuse_shared_hosts(change.scope)


def _remove(
    tx: Transaction, scope_id: ScopeId, names: Iterable[ResourceName], by: Actor
) -> list[ResourceName]:
    # Loaded again: removing a VM may have ended an event of this scope, and some of these VMs may
    # have been removed by then.
    scope = tx.load(scope_id)
    removed = [name for name in names if name in scope.resources]
    change = Change(scope=scope)
    for name in removed:
        change = change.plus(lifecycle.remove(change.scope, name, now=tx.now))
    save(tx, change, by=by)
    return removed


def _enroll(tx: Transaction, planned: Sequence[PlannedScope], *, by: Actor) -> Applied:
    known = {scope.id for scope in tx.load_all([plan.scope.id for plan in planned])}
    added: dict[ResourceName, None] = {}
    changed: dict[ResourceName, None] = {}
    changes: list[Change] = []
    for plan in planned:
        if plan.scope.id not in known:
            known.add(plan.scope.id)
            tx.create(replace(plan.scope, resources={}, events={}))
        change = _enrolled(tx.load(plan.scope.id), plan, now=tx.now)
        _refuse_shared_hosts(change.scope)
        changes.append(change)
        facts = change.transitions
        added.update((f.resource, None) for f in facts if isinstance(f, ResourceAdded))
        changed.update((f.resource, None) for f in facts if isinstance(f, ResourceChanged))
    bound = tx.enroll(changes, [each for plan in planned for each in plan.bindings], by=by)
    changed.update((name, None) for name in bound if name not in added)
    vms = sum(len(plan.scope.resources) for plan in planned)
    return Applied(
        added=tuple(added), changed=tuple(changed), unchanged=vms - len(added) - len(changed)
    )


def _enrolled(scope: Scope, plan: PlannedScope, *, now: datetime) -> Change:
    return membership.enroll(scope, plan.scope, placed=plan.placed, now=now)


def _refuse_shared_hosts(scope: Scope) -> None:
    domains: dict[str, set[int]] = {}
    for resource in scope.resources.values():
        domains.setdefault(resource.host, set()).add(resource.update_domain)
    for host, held in domains.items():
        if len(held) > 1:
            raise HostSharedError(host, scope.id, held)


def _batches(parts: Iterable[T], weight: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    batch: list[T] = []
    heavy = 0
    for part in parts:
        batch.append(part)
        heavy += weight(part)
        if heavy >= STEP:
            yield tuple(batch)
            batch, heavy = [], 0
    if batch:
        yield tuple(batch)
