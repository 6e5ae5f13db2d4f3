"""Switching VMs on and off. No event announces it: the owner wants it, at once."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from forewarned.core.change import Change
from forewarned.core.ids import ResourceName
from forewarned.core.lifecycle import named
from forewarned.core.model import ResourceState, Scope
from forewarned.core.transitions import PowerChanged, Transition


def switch(
    scope: Scope, names: Collection[ResourceName], state: ResourceState, *, now: datetime
) -> Change:
    """Bring VMs to a state. One that an event interrupts is left to the event, which restores it.

    Open events stay: a VM that is off may be on again before their NotBefore.
    """
    resources = dict(scope.resources)
    facts: list[Transition] = []
    for vm in named(scope, names):
        if vm.state in (state, ResourceState.INTERRUPTED):
            continue
        resources[vm.name] = replace(vm, state=state)
        facts.append(PowerChanged(scope_id=scope.id, at=now, resource=vm.name, state=state))
    if not facts:
        return Change(scope=scope)
    return Change(scope=replace(scope, resources=resources), transitions=tuple(facts))
