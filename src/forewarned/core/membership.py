"""The VMs of a scope: they join it, their models change, and they leave it, alone or in a reset.

Invariant: an open event names VMs that are in its scope, and at least one.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Final

from forewarned.core.change import Change, ended, published, with_event
from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import Resource, Scope
from forewarned.core.starting import settle
from forewarned.core.transitions import (
    Deactivated,
    Narrowed,
    PolicyChanged,
    ResourceAdded,
    ResourceChanged,
    ResourceRemoved,
    Transition,
)

RESET: Final = "the emulator was reset"


def enroll(
    scope: Scope, planned: Scope, *, now: datetime, placed: Collection[ResourceName] = ()
) -> Change:
    """Bring the scope's VMs and policy to what is planned. VMs that are not planned stay.

    A VM that is here keeps its state and its domains: those are what happened to it, not what
    an operator planned, and open events rest on them. It keeps its host too, unless it is one of
    those `placed`: the plan says where they are.
    """
    resources: dict[ResourceName, Resource] = dict(scope.resources)
    facts: list[Transition] = []
    for name, wanted in planned.resources.items():
        here = resources.get(name)
        if here is None:
            resources[name] = wanted
            facts.append(ResourceAdded(scope_id=scope.id, at=now, resource=name))
            continue
        changed = replace(
            wanted,
            host=wanted.host if name in placed else here.host,
            update_domain=here.update_domain,
            fault_domain=here.fault_domain,
            state=here.state,
        )
        if changed != here:
            resources[name] = changed
            facts.append(ResourceChanged(scope_id=scope.id, at=now, resource=name))
    if planned.policy != scope.policy:
        facts.append(PolicyChanged(scope_id=scope.id, at=now))
    after = replace(scope, resources=resources, policy=planned.policy)
    change = Change(scope=after, transitions=tuple(facts))
    # Only in a database of an older version: there, a Started event outlived its VMs.
    outlived = {name for event in scope.events.values() for name in event.resources}
    for name in planned.resources:
        if name in outlived and name not in scope.resources:
            change = change.plus(_released(change.scope, name, now=now))
    return change if change.scope.events == scope.events else settle(scope, change, now=now)


def move(scope: Scope, name: ResourceName, host: HostName, *, now: datetime) -> Change:
    """A VM was found on a host. No change if it was known to be there, or is gone."""
    vm = scope.resources.get(name)
    if vm is None or vm.host == host:
        return Change(scope=scope)
    resources = {**scope.resources, name: replace(vm, host=host)}
    fact = ResourceChanged(scope_id=scope.id, at=now, resource=name)
    return Change(scope=replace(scope, resources=resources), transitions=(fact,))


def departed(scope: Scope, name: ResourceName, *, now: datetime) -> Change:
    """Take a VM out, however it went; what may start because of that is left to `settle`."""
    resources = {other: vm for other, vm in scope.resources.items() if other != name}
    fact = ResourceRemoved(scope_id=scope.id, at=now, resource=name)
    gone = Change(scope=replace(scope, resources=resources), transitions=(fact,))
    return gone.plus(_released(gone.scope, name, now=now))


def clear(scope: Scope, *, leaving: Collection[ResourceName], now: datetime) -> Change:
    """End every event, forget that any VM has read the document, and let VMs leave.

    For emulators, between two tests. Invariant: the incarnation never falls (I7). VMs that have
    read the document go on reading it.
    """
    change = Change(scope=replace(scope, rounds=None))
    for event in scope.events.values():
        change = change.plus(ended(change.scope, event, reason=RESET, now=now))
    if scope.active:
        asleep = replace(change.scope, active=False, last_read_at=None)
        fact = Deactivated(scope_id=scope.id, at=now)
        change = change.plus(Change(scope=asleep, transitions=(fact,)))
    staying = {name: vm for name, vm in scope.resources.items() if name not in leaving}
    gone = [ResourceRemoved(scope_id=scope.id, at=now, resource=name) for name in leaving]
    left = Change(scope=replace(change.scope, resources=staying), transitions=tuple(gone))
    return published(scope, change.plus(left))


def _released(scope: Scope, name: ResourceName, *, now: datetime) -> Change:
    """Events go on for the others they name; one that names no other ends.

    Otherwise a VM that gets this name later would read of them, and a delete that was under way
    would delete it.
    """
    change = Change(scope=scope)
    for event in scope.events.values():
        if name not in event.resources:
            continue
        others = tuple(other for other in event.resources if other != name)
        if not others:
            reason = f"VM {name} is gone"
            change = change.plus(ended(change.scope, event, reason=reason, now=now))
            continue
        narrowed = replace(event, resources=others)
        less = Narrowed(scope_id=scope.id, at=now, event=narrowed, resource=name)
        change = change.plus(Change(scope=with_event(change.scope, narrowed), transitions=(less,)))
    return change
