"""What saving a change writes: decided here, once, for every store.

Invariant: an event leaves a scope only with the record of how it ended.
"""

from typing import Final, NamedTuple

from forewarned.core import transitions as facts
from forewarned.core.change import Change
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import Resource, Scope
from forewarned.core.transitions import Canceled, Completed, Transition
from forewarned.service.errors import NameTakenError
from forewarned.service.records import EventRecord
from forewarned.storage.errors import VanishedEventError


class Delta(NamedTuple):
    """The difference between a stored scope and the scope to be stored."""

    scope: Scope
    """The scope to be stored."""
    removed: tuple[ResourceName, ...]
    """VMs to remove before any is added: one may come back in another letter case."""
    added: tuple[Resource, ...]
    changed: tuple[Resource, ...]
    order: tuple[ResourceName, ...]
    """All VMs in their new order; empty if the order stays and those added come last."""
    opened: tuple[EventId, ...]
    """The new events among the records. Their ids must be new to the whole store."""
    records: tuple[EventRecord, ...]
    """Events to write, oldest first, including those that are over."""
    transitions: tuple[Transition, ...]


class _Vms(NamedTuple):
    """The part of a delta that most changes leave alone."""

    removed: tuple[ResourceName, ...] = ()
    added: tuple[Resource, ...] = ()
    changed: tuple[Resource, ...] = ()
    order: tuple[ResourceName, ...] = ()


_NO_VMS: Final = _Vms()
_ENDINGS: Final = (Completed, Canceled)


def between(before: Scope, change: Change) -> Delta | None:
    """None if there is nothing to write."""
    after = change.scope
    vms = _NO_VMS if after.resources is before.resources else _between_vms(before, after)
    # In this order, because comparing two scopes takes as long as all the rest.
    if not change.transitions and not vms.order and before == after:
        return None
    records = () if after.events is before.events else _records(before, change)
    return Delta(
        scope=after,
        removed=vms.removed,
        added=vms.added,
        changed=vms.changed,
        order=vms.order,
        opened=tuple([r.event.id for r in records if r.event.id not in before.events]),
        records=records,
        transitions=change.transitions,
    )


def refuse_inhabited(scope: Scope) -> None:
    """A scope is created empty: what is added to it is saved later, so that history records it."""
    if scope.resources or scope.events:
        raise ValueError(f"scope {scope.id!r} must be created without VMs and events")


def fold(name: str) -> str:
    """The form in which names are compared: names that differ only in letter case are one name."""
    return name.casefold()


def _between_vms(before: Scope, after: Scope) -> _Vms:
    formers = before.resources
    changed = [
        vm
        for name, vm in after.resources.items()
        # Most are the same object, and comparing by value takes far longer.
        if (former := formers.get(name)) is not vm and former is not None and former != vm
    ]
    if list(formers) == list(after.resources):
        return _Vms(changed=tuple(changed))
    added = tuple(vm for name, vm in after.resources.items() if name not in formers)
    if added:
        _refuse_names_twice(after)
    return _Vms(
        removed=tuple(name for name in formers if name not in after.resources),
        added=added,
        changed=tuple(changed),
        order=_new_order(before, after),
    )


def _records(before: Scope, change: Change) -> tuple[EventRecord, ...]:
    after = change.scope
    ended = {
        fact.event.id: fact
        for fact in change.transitions
        if isinstance(fact, _ENDINGS) and fact.event.id not in after.events
    }
    for event_id in before.events:
        if event_id not in after.events and event_id not in ended:
            raise VanishedEventError(event_id)
    records = [
        EventRecord(
            scope_id=after.id, event=fact.event, ended_at=fact.at, end_reason=facts.cause(fact)
        )
        for fact in ended.values()
    ]
    for event_id, event in after.events.items():
        former = before.events.get(event_id)
        if former is not event and former != event:
            records.append(EventRecord(scope_id=after.id, event=event))
    return tuple(records)


def _new_order(before: Scope, after: Scope) -> tuple[ResourceName, ...]:
    stayed = [name for name in before.resources if name in after.resources]
    came = [name for name in after.resources if name not in before.resources]
    wanted = tuple(after.resources)
    return () if wanted == (*stayed, *came) else wanted


def _refuse_names_twice(scope: Scope) -> None:
    folded = set()
    for name in scope.resources:
        if fold(name) in folded:
            raise NameTakenError(name, scope.id)
        folded.add(fold(name))
