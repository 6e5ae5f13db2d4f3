"""Who is in a scope: VMs join it, and their models change. (`lifecycle.remove` takes them out.)"""

from dataclasses import replace
from datetime import datetime

from notbefore.core.change import Change
from notbefore.core.ids import ResourceName
from notbefore.core.model import Resource, Scope
from notbefore.core.transitions import PolicyChanged, ResourceAdded, ResourceChanged, Transition


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
    return Change(scope=after, transitions=tuple(facts))
