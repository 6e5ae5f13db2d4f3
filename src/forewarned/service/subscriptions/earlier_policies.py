"""Policies that asked for publishing before there was any: their scopes are given it, once.

ARM's documents are stored as clients declared them, and earlier versions passed over what they say
of publishing. Without this, such a scope would publish nothing until it is declared once more.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from forewarned.core.copying import replace
from forewarned.core.ids import ScopeId
from forewarned.core.model import NO_PUBLISHING, Actor, Publishing
from forewarned.service.azure import enrollment, inventory
from forewarned.service.azure.models.policies import stored_publishing
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    MACHINES,
    SCALE_SETS,
    InvalidResourceIdError,
    ResourceId,
    same,
)
from forewarned.service.engine import Engine
from forewarned.service.ports import Transaction

_TAKEN_OVER: Final = "publishing policies taken over"


async def take_over_policies(engine: Engine, *, by: Actor) -> None:
    if await engine.ask(lambda snapshot: snapshot.note(_TAKEN_OVER)) is None:
        await engine.decide(partial(take_over, by=by))


def take_over(tx: Transaction, *, by: Actor) -> None:
    """Once: from then on a policy that is off was switched off, whatever its document says."""
    if tx.note(_TAKEN_OVER) is not None:
        return
    for scope_id, publishing in list(_asked_for(tx)):
        policy = tx.load(scope_id).policy
        if policy.publishing == NO_PUBLISHING:
            enrollment.set_policy(tx, scope_id, replace(policy, publishing=publishing), by=by)
    tx.put_note(_TAKEN_OVER, "yes")


def _asked_for(tx: Transaction) -> Iterator[tuple[ScopeId, Publishing]]:
    for declaration in tx.declarations("/subscriptions/"):
        publishing = stored_publishing(declaration)
        if publishing.enabled:
            for scope_id in _scopes(tx, declaration.path):
                yield scope_id, publishing


def _scopes(tx: Transaction, path: str) -> Sequence[ScopeId]:
    """Those that have the policy of this resource."""
    try:
        id_ = ResourceId.parse(path)
    except InvalidResourceIdError:
        # A resource group, or the model of a scale set.
        return ()
    if same(id_.type, SCALE_SETS):
        return inventory.placement_groups(tx, id_.name)
    if same(id_.type, AVAILABILITY_SETS):
        scope_id = inventory.availability_scope(tx, id_.name)
        return (scope_id,) if tx.exists(scope_id) else ()
    vm = inventory.virtual_machine(tx, id_) if same(id_.type, MACHINES) else None
    return (vm.scope_id,) if vm is not None and vm.is_alone else ()
