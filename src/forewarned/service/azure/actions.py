"""What people do to VMs: restart, redeploy, switch off and on, evict, delete.

Invariant: asking twice does not act twice. Clients send a request again when
they get no answer, so an action on a VM with an open event of that kind joins the event.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeVar, assert_never

from forewarned.core import descriptions, lifecycle, power
from forewarned.core.change import Change
from forewarned.core.errors import Category, RefusalError
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.lifecycle import NewEvent
from forewarned.core.model import (
    Actor,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Priority,
    ResourceState,
)
from forewarned.service.azure.context import AzureContext, Ids
from forewarned.service.azure.inventory import VmView
from forewarned.service.engine import save
from forewarned.service.ports import Transaction

T = TypeVar("T")


class Action(StrEnum):
    RESTART = "restart"
    REDEPLOY = "redeploy"
    REIMAGE = "reimage"
    EVICT = "simulateEviction"
    MAINTAIN = "performMaintenance"
    START = "start"
    POWER_OFF = "powerOff"
    DEALLOCATE = "deallocate"
    DELETE = "delete"


class NotRunningError(RefusalError, category=Category.CONFLICT, field="resources"):
    def __init__(self, name: str, state: str, done: str) -> None:
        super().__init__(
            f"VM {name!r} is {state}, and must be running to be {done}: start it first"
        )
        self.name = name


class NothingToMaintainError(RefusalError, category=Category.CONFLICT, field="resources"):
    def __init__(self, names: Iterable[str]) -> None:
        listed = ", ".join(names)
        super().__init__(f"there is no platform maintenance to start for {listed}")


_EVENTS: Final = {
    Action.RESTART: (EventType.REBOOT, EventSource.USER),
    Action.REDEPLOY: (EventType.REDEPLOY, EventSource.USER),
    Action.EVICT: (EventType.PREEMPT, EventSource.PLATFORM),
}
_PARTICIPLES: Final = {
    Action.RESTART: "restarted",
    Action.REDEPLOY: "redeployed",
    Action.EVICT: "evicted",
}
_POWER: Final = {
    Action.START: ResourceState.RUNNING,
    Action.POWER_OFF: ResourceState.STOPPED,
    Action.DEALLOCATE: ResourceState.DEALLOCATED,
}
_OFF: Final = frozenset({ResourceState.STOPPED, ResourceState.DEALLOCATED})


def operate(
    tx: Transaction, vms: Sequence[VmView], action: Action, *, context: AzureContext
) -> tuple[EventId, ...]:
    """The events to wait for. All VMs are checked before anything is done to one of them."""
    match action:
        case Action.RESTART | Action.REDEPLOY | Action.EVICT:
            _refuse_off(vms, action)
            wanted = [_Wanted(vm, *_EVENTS[action]) for vm in vms]
        case Action.REIMAGE:
            wanted = [
                _Wanted(
                    vm,
                    EventType.REBOOT,
                    EventSource.USER,
                    notice=vm.profile.image_notice,
                    silent=vm.profile.image_notice is None,
                )
                for vm in vms
            ]
        case Action.DELETE:
            return remove(tx, vms, force=False, context=context)
        case Action.MAINTAIN:
            return _maintain(tx, vms, context=context)
        case Action.START | Action.POWER_OFF | Action.DEALLOCATE:
            _switch(tx, vms, _POWER[action], by=context.by)
            return ()
        case other:
            assert_never(other)
    return _schedule(tx, wanted, context=context)


def remove(
    tx: Transaction, vms: Sequence[VmView], *, force: bool, context: AzureContext
) -> tuple[EventId, ...]:
    """Delete VMs: with notice where their own model asks for it, else at once."""
    if force:
        _call_off_deletes(tx, vms, by=context.by)
    return _schedule(
        tx,
        [
            _Wanted(
                m,
                EventType.TERMINATE,
                EventSource.USER,
                silent=force
                or m.resource.terminate_notice is None
                or m.resource.priority is Priority.SPOT,
            )
            for m in vms
        ],
        context=context,
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    vm: VmView
    type: EventType
    source: EventSource
    notice: timedelta | None = None
    silent: bool = False

    def new_event(self, ids: Ids) -> NewEvent:
        return NewEvent(
            id=ids.event(self.type, self.vm.name),
            type=self.type,
            source=self.source,
            resources=(self.vm.name,),
            notice=self.notice,
            description=descriptions.usual(self.type, self.source),
            silent=self.silent,
        )

    def is_met_by(self, event: Event) -> bool:
        return (
            event.type is self.type
            and event.source is self.source
            and self.vm.name in event.resources
        )


def _schedule(
    tx: Transaction, wanted: Sequence[_Wanted], *, context: AzureContext
) -> tuple[EventId, ...]:
    event_ids: list[EventId] = []
    for scope_id, here in _by_scope(wanted, lambda each: each.vm.scope_id):
        change = Change(scope=tx.load(scope_id))
        for each in here:
            joined = next(filter(each.is_met_by, change.scope.events.values()), None)
            if joined is not None:
                event_ids.append(joined.id)
                continue
            new = each.new_event(context.ids)
            event_ids.append(new.id)
            change = change.plus(
                lifecycle.schedule(change.scope, new, rules=context.rules, now=tx.now)
            )
        save(tx, change, by=context.by)
    return tuple(dict.fromkeys(event_ids))


def _call_off_deletes(tx: Transaction, vms: Sequence[VmView], *, by: Actor) -> None:
    """So that VMs that are deleted by force don't join a delete that still gives notice."""
    for vm in vms:
        for event in vm.events:
            if event.type is EventType.TERMINATE and event.status is EventStatus.SCHEDULED:
                scope = tx.load(vm.scope_id)
                reason = "deleted by force"
                save(tx, lifecycle.cancel(scope, event.id, reason=reason, now=tx.now), by=by)


def _maintain(
    tx: Transaction, vms: Sequence[VmView], *, context: AzureContext
) -> tuple[EventId, ...]:
    """Let the platform's maintenance of these VMs start now: an approval by their owner."""
    waiting = {
        event.id: vm.scope_id
        for vm in vms
        for event in vm.events
        if event.source is EventSource.PLATFORM and event.type is not EventType.PREEMPT
    }
    if not waiting:
        raise NothingToMaintainError(vm.name for vm in vms)
    for event_id, scope_id in waiting.items():
        change = lifecycle.approve(
            tx.load(scope_id), (event_id,), by=context.by, rules=context.rules, now=tx.now
        )
        save(tx, change, by=context.by)
    return tuple(waiting)


def _switch(tx: Transaction, vms: Sequence[VmView], state: ResourceState, *, by: Actor) -> None:
    for scope_id, here in _by_scope(vms, lambda vm: vm.scope_id):
        names = [vm.name for vm in here]
        save(tx, power.switch(tx.load(scope_id), names, state, now=tx.now), by=by)


def _refuse_off(vms: Iterable[VmView], action: Action) -> None:
    for vm in vms:
        if vm.resource.state in _OFF:
            raise NotRunningError(vm.name, vm.resource.state, _PARTICIPLES[action])


def _by_scope(
    parts: Iterable[T], scope_id: Callable[[T], ScopeId]
) -> Iterable[tuple[ScopeId, list[T]]]:
    grouped: dict[ScopeId, list[T]] = {}
    for each in parts:
        grouped.setdefault(scope_id(each), []).append(each)
    return grouped.items()
