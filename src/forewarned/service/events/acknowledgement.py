"""Approvals by Azure's `acknowledge`, which names a resource: a VM, or a set of VMs.

Invariant: an event of another resource is answered as if it did not exist.
"""

from collections.abc import Callable, Mapping, Sequence

from forewarned.core.errors import Category, RefusalError, UnknownEventError
from forewarned.core.ids import EventId, same_name
from forewarned.core.model import Actor
from forewarned.core.rules import Rules
from forewarned.service.azure import availability_sets, inventory, scale_sets, vms
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    MACHINES,
    SCALE_SETS,
    ResourceId,
    same,
)
from forewarned.service.events import approval
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import EventRecord

Concerns = Callable[[EventRecord], bool]


class UnknownKindError(RefusalError, category=Category.INVALID, field="resourceType"):
    """Only VMs and sets of VMs have events."""

    def __init__(self, type_: str) -> None:
        super().__init__(
            f"a resource of type {type_[:100]} has no scheduled events: only virtualMachines,"
            " virtualMachineScaleSets and availabilitySets have them"
        )
        self.type = type_


def acknowledge(
    tx: Transaction, id_: ResourceId, event_ids: Sequence[EventId], *, rules: Rules, by: Actor
) -> Mapping[EventId, RefusalError | None]:
    """Approve events of this resource. For each id: why it was refused, or None.

    Raises RefusalError for an unknown resource.
    """
    concerns = _events_of(tx, id_)
    results: dict[EventId, RefusalError | None] = {}
    for event_id in event_ids:
        record = tx.event(event_id)
        if record is None or not concerns(record) or not approval.may_know(tx, record, by):
            results[event_id] = UnknownEventError(event_id)
            continue
        try:
            approval.approve(tx, tx.load(record.scope_id), (event_id,), rules=rules, by=by)
        except RefusalError as error:
            results[event_id] = error
        else:
            results[event_id] = None
    return results


def _events_of(snapshot: Snapshot, id_: ResourceId) -> Concerns:
    if same(id_.type, MACHINES):
        vm = vms.find(snapshot, id_)
        return lambda record: (
            record.scope_id == vm.scope_id
            and any(same_name(vm.name, other) for other in record.event.resources)
        )
    if same(id_.type, SCALE_SETS):
        name = scale_sets.find(snapshot, id_).id.name
        groups = set(inventory.placement_groups(snapshot, name))
        return lambda record: record.scope_id in groups
    if same(id_.type, AVAILABILITY_SETS):
        availability_sets.find(snapshot, id_)
        scope_id = inventory.availability_scope(snapshot, id_.name)
        return lambda record: record.scope_id == scope_id
    raise UnknownKindError(id_.type)
