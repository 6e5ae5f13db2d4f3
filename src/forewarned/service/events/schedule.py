"""Scheduling events and canceling them: single ones, a host's, a whole set's."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Protocol, TypeVar

from forewarned.core import descriptions, errors, lifecycle, maintenance
from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.lifecycle import NewEvent
from forewarned.core.maintenance import Maintenance
from forewarned.core.model import Actor, EventSource, EventType, Scope
from forewarned.core.rules import Rules
from forewarned.core.transitions import EventTransition
from forewarned.service.ports import Transaction
from forewarned.service.records import EventRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
    """Maintenance to schedule, of a host or of a set. None leaves a value to the type of event."""

    type: EventType
    notice: timedelta | None = None
    short_notice: bool = False
    duration: timedelta | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOrder(WorkOrder):
    """Events of these VMs to schedule."""

    resources: tuple[ResourceName, ...]
    source: EventSource


def usual_source(type_: EventType) -> EventSource:
    """The user, for what users do to their own VMs; the rest only ever happens to them."""
    is_by_user = type_ in {EventType.REBOOT, EventType.REDEPLOY, EventType.TERMINATE}
    return EventSource.USER if is_by_user else EventSource.PLATFORM


class NewIds:
    """The ids that one use case needs. Every run of its transaction function gets the same ones.

    Only the function finds out how many it takes, so they are drawn as needed, and remembered.
    """

    def __init__(self, new_id: Callable[[], EventId]) -> None:
        self._new_id = new_id
        self._drawn: list[EventId] = []

    def __iter__(self) -> Iterator[EventId]:
        for number in count():
            if number == len(self._drawn):
                self._drawn.append(self._new_id())
            yield self._drawn[number]

    def of(self, records: Iterable[EventRecord]) -> list[EventRecord]:
        """Those of events with these ids: what was overdue in their scopes may have started too."""
        return [record for record in records if record.event.id in self._drawn]


class _HostDecision(Protocol):
    def __call__(
        self,
        scopes: Iterable[Scope],
        host: HostName,
        *,
        event_ids: Iterator[EventId],
        rules: Rules,
        now: datetime,
    ) -> list[Change]: ...


class Decides(Protocol):
    """What a scheduler needs of the engine."""

    async def decide(
        self, function: Callable[[Transaction], T], *, touching: Collection[ScopeId] = ()
    ) -> T: ...


class Scheduler:
    def __init__(self, engine: Decides, rules: Rules, new_id: Callable[[], EventId]) -> None:
        self._engine = engine
        self._rules = rules
        self._new_id = new_id

    async def schedule(self, order: EventOrder, *, by: Actor) -> list[EventRecord]:
        """One event for each scope the VMs are in; a Terminate for each VM, as Azure does it."""
        new_ids = NewIds(self._new_id)

        def decision(tx: Transaction) -> list[EventRecord]:
            changes, ids = [], iter(new_ids)
            names_by_scope = _by_scope(tx, order.resources)
            for scope in tx.load_all(names_by_scope):
                change, names = Change(scope=scope), names_by_scope[scope.id]
                for new in _new_events(order, names, ids):
                    change = change.plus(
                        lifecycle.schedule(change.scope, new, rules=self._rules, now=tx.now)
                    )
                changes.append(change)
            return new_ids.of(_saved(tx, changes, by))

        return await self._engine.decide(decision)

    async def maintain_host(
        self, host: HostName, order: WorkOrder, *, by: Actor
    ) -> list[EventRecord]:
        work = self._work(order)
        return await self._on_host(host, partial(maintenance.maintain_host, work=work), by=by)

    async def maintain_set(
        self, scope_id: ScopeId, order: WorkOrder, *, by: Actor
    ) -> list[EventRecord]:
        """The event of the first update domain; the others follow one by one."""
        work, new_ids = self._work(order), NewIds(self._new_id)

        def decision(tx: Transaction) -> list[EventRecord]:
            change = maintenance.maintain_set(
                tx.load(scope_id), work, event_ids=iter(new_ids), rules=self._rules, now=tx.now
            )
            return new_ids.of(_saved(tx, [change], by))

        return await self._engine.decide(decision)

    async def fail_host(self, host: HostName, *, by: Actor) -> list[EventRecord]:
        fail = partial(maintenance.fail_host, description=descriptions.HOST_FAILURE)
        return await self._on_host(host, fail, by=by)

    async def predict_failure(self, host: HostName, *, by: Actor) -> list[EventRecord]:
        predict = partial(maintenance.predict_failure, description=descriptions.PREDICTED_FAILURE)
        return await self._on_host(host, predict, by=by)

    async def cancel(self, event_id: EventId, *, reason: str, by: Actor) -> list[EventRecord]:
        """Cancel an event, with all the maintenance it is a part of."""

        def decision(tx: Transaction) -> list[EventRecord]:
            record = tx.event(event_id)
            if record is None:
                raise errors.UnknownEventError(event_id)
            scope = tx.load(record.scope_id)
            closed = tx.closed(scope.id, (event_id,))
            change = lifecycle.cancel(scope, event_id, reason=reason, now=tx.now, closed=closed)
            changes = [change, *_canceled_elsewhere(tx, record, reason)]
            return _saved(tx, changes, by)

        return await self._engine.decide(decision)

    async def _on_host(
        self, host: HostName, decide: _HostDecision, *, by: Actor
    ) -> list[EventRecord]:
        new_ids = NewIds(self._new_id)

        def decision(tx: Transaction) -> list[EventRecord]:
            scopes = tx.load_all(tx.scopes_on(host))
            event_ids = iter(new_ids)
            changes = decide(scopes, host, event_ids=event_ids, rules=self._rules, now=tx.now)
            return new_ids.of(_saved(tx, changes, by))

        return await self._engine.decide(decision)

    def _work(self, order: WorkOrder) -> Maintenance:
        return Maintenance(
            id=MaintenanceId(self._new_id()),
            type=order.type,
            notice=order.notice,
            short_notice=order.short_notice,
            duration=order.duration,
            description=descriptions.HOST_MAINTENANCE
            if order.description is None
            else order.description,
        )


def _new_events(
    order: EventOrder, names: tuple[ResourceName, ...], ids: Iterator[EventId]
) -> Iterator[NewEvent]:
    one_each = order.type is EventType.TERMINATE
    description = order.description
    if description is None:
        description = descriptions.usual(order.type, order.source)
    for group in ((name,) for name in names) if one_each else (names,):
        yield NewEvent(
            id=next(ids),
            type=order.type,
            source=order.source,
            resources=group,
            notice=order.notice,
            short_notice=order.short_notice,
            duration=order.duration,
            description=description,
        )


def _by_scope(
    tx: Transaction, names: Iterable[ResourceName]
) -> dict[ScopeId, tuple[ResourceName, ...]]:
    names = list(names)
    bound = {each.name.casefold(): each for each in tx.bindings_named(names)}
    found: dict[ScopeId, list[ResourceName]] = {}
    seen: set[ResourceName] = set()
    for name in names:
        binding = bound.get(name.casefold())
        if binding is None:
            raise errors.UnknownResourceError(name)
        if binding.name in seen:
            raise errors.DuplicateResourceError(binding.name)
        seen.add(binding.name)
        found.setdefault(binding.scope_id, []).append(binding.name)
    if not found:
        raise errors.NoResourcesError
    return {scope_id: tuple(here) for scope_id, here in found.items()}


def _canceled_elsewhere(tx: Transaction, record: EventRecord, reason: str) -> list[Change]:
    work = record.event.maintenance
    if work is None:
        return []
    others = [scope_id for scope_id in tx.scopes_of_work(work) if scope_id != record.scope_id]
    return [
        lifecycle.call_off(scope, work, reason=reason, now=tx.now) for scope in tx.load_all(others)
    ]


def _saved(tx: Transaction, changes: Iterable[Change], by: Actor) -> list[EventRecord]:
    """Save, and return the events that the changes created or changed, as they are now."""
    touched: dict[EventId, None] = {}
    for change in changes:
        tx.save(change, by=by)
        for fact in change.transitions:
            if isinstance(fact, EventTransition):
                touched[fact.event.id] = None
    records = (tx.event(event_id) for event_id in touched)
    return [record for record in records if record is not None]
