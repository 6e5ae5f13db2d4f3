"""Who is in a scope: VMs join it, and their models change. (`lifecycle.remove` takes them out.)"""

from dataclasses import replace
from datetime import datetime

from notbefore.core.change import Change, with_event, without_event
from notbefore.core.ids import ResourceName
from notbefore.core.model import EventStatus, Resource, Scope
from notbefore.core.starting import settle
from notbefore.core.transitions import (
    Completed,
    Narrowed,
    PolicyChanged,
    ResourceAdded,
    ResourceChanged,
    Transition,
)


def enroll(scope: Scope, planned: Scope, *, now: datetime) -> Change:
    """Bring the scope's VMs and policy to what is planned. VMs that are not planned stay.

    A VM that is here keeps its state and its place (host and domains): those are what happened to
    it, not what somebody planned, and open events rest on them.
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
            host=here.host,
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
    for name in planned.resources:
        if name not in scope.resources:
            change = change.plus(_left_behind(change.scope, name, now=now))
    return change if change.scope.events == scope.events else settle(scope, change, now=now)


def _left_behind(scope: Scope, name: ResourceName, *, now: datetime) -> Change:
    """Take a new VM's name out of events that began for one of that name which is gone.

    Or the new one would read of them, and a delete that was under way would delete it.
    """
    change = Change(scope=scope)
    for event in scope.events.values():
        if name not in event.resources:
            continue
        others = tuple(other for other in event.resources if other != name)
        if others:
            narrowed = replace(event, resources=others)
            less = Narrowed(scope_id=scope.id, at=now, event=narrowed, resource=name)
            step = Change(scope=with_event(change.scope, narrowed), transitions=(less,))
        else:
            over = replace(event, status=EventStatus.COMPLETED)
            done = Completed(scope_id=scope.id, at=now, event=over)
            step = Change(scope=without_event(change.scope, event.id), transitions=(done,))
        change = change.plus(step)
    return change
