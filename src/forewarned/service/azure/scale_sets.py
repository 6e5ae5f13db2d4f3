"""Scale sets: declared, scaled, brought to a new model, deleted.

Invariants: capacity is the number of VMs that stay, so the two can't differ; an
instance number is never used twice; a model that changes touches no VM until it is brought to it.

Each function is one decision in a transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from forewarned.core.errors import Category, RefusalError
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import Actor, EventType
from forewarned.service.azure import (
    actions,
    enrollment,
    group_index,
    instances,
    inventory,
    protection,
)
from forewarned.service.azure.actions import Action
from forewarned.service.azure.context import AzureContext, Outcome
from forewarned.service.azure.group_index import BeingDeletedError
from forewarned.service.azure.inventory import ScaleSetView, VmView
from forewarned.service.azure.models.documents import encoded
from forewarned.service.azure.models.origin import came_with_fleet, mark
from forewarned.service.azure.models.scale_set import (
    DeclaredScaleSet,
    ModelsInUse,
    UpgradeMode,
    declared_set,
    image_of,
    model_path,
)
from forewarned.service.azure.models.set_changes import refuse_name, revised_set
from forewarned.service.azure.protection import NONE
from forewarned.service.azure.resource_ids import ResourceId, same
from forewarned.service.fleet.declaration import FleetPlan, Model, Orchestration, ScaleSet
from forewarned.service.fleet.layout import instance_names
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration

SetOutcome = Outcome[ScaleSetView]

_OWNER: Final = "owner of scale set "


class SetNameTakenError(RefusalError, category=Category.CONFLICT, field="name"):
    """VMs are named after their set, and no two VMs of a fleet have the same name."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(
            f"a scale set {name!r} already exists: {path}."
            " Names of sets and VMs are unique in a fleet, across all resource groups"
        )
        self.name = name
        self.path = path


class UnknownSetError(RefusalError, category=Category.NOT_FOUND, field="name"):
    def __init__(self, path: str) -> None:
        super().__init__(f"there is no scale set {path}")
        self.path = path


class UnknownInstanceError(RefusalError, category=Category.INVALID, field="instanceIds"):
    def __init__(self, instance_id: str, path: str) -> None:
        super().__init__(f"there is no instance {instance_id!r} in {path}")
        self.instance_id = instance_id


def find(snapshot: Snapshot, id_: ResourceId) -> ScaleSetView:
    view = inventory.scale_set(snapshot, id_)
    if view is None:
        raise UnknownSetError(id_.path)
    return view


def choose(
    snapshot: Snapshot, view: ScaleSetView, instance_ids: Sequence[str] | None
) -> list[VmView]:
    """The VMs with these ids, in this order; for None and `*`, all that are not protected."""
    if instance_ids is None or "*" in instance_ids:
        return _unprotected(snapshot, view)
    by_id = {vm.instance_id.casefold(): vm for vm in view.vms}
    # Azure also takes the names of VMs, by which it identifies those of a Flexible set.
    by_id |= {vm.name.casefold(): vm for vm in view.vms}
    found: dict[ResourceName, VmView] = {}
    for instance_id in instance_ids:
        vm = by_id.get(instance_id.casefold())
        if vm is None:
            raise UnknownInstanceError(instance_id, view.id.path)
        found[vm.name] = vm
    return list(found.values())


def _unprotected(snapshot: Snapshot, view: ScaleSetView) -> list[VmView]:
    """The VMs that an action on the whole set applies to."""
    protections = protection.of_set(snapshot, view)
    return [m for m in view.vms if not protections.get(m.name, NONE).from_set_actions]


def put(
    tx: Transaction, id_: ResourceId, sent: Mapping[str, Any], *, context: AzureContext
) -> SetOutcome:
    """Create a set, or change it. `sent` is a resource of ARM, or a part of one.

    Raises InvalidPropertyError, PropertyChangeError.
    """
    view = inventory.scale_set(tx, id_)
    if view is None:
        return create(tx, id_, sent, context=context)
    return change(tx, view, sent, context=context)


def create(
    tx: Transaction, id_: ResourceId, sent: Mapping[str, Any], *, context: AzureContext
) -> SetOutcome:
    group = group_index.require(tx, id_.subscription, id_.group)
    refuse_name(id_.name)
    location = group.location or context.location
    declared = revised_set(None, sent, name=id_.name, location=location)
    _refuse_taken(tx, id_)
    _withdraw(tx, id_)
    declaration = Declaration(
        path=id_.path, document=encoded(declared.document), created_at=tx.now, revision=1
    )
    tx.declare(declaration)
    tx.declare(_model(tx, declaration, declared))
    tx.put_note(_OWNER + id_.name.casefold(), id_.path)
    tx.record("declared", by=context.by, cause=id_.path)
    _set_policy(tx, declared, by=context.by)
    _grow(tx, id_, declaration, declared, more=declared.capacity, context=context)
    return Outcome(view=find(tx, id_), created=True)


def change(
    tx: Transaction, view: ScaleSetView, sent: Mapping[str, Any], *, context: AzureContext
) -> SetOutcome:
    if view.is_going:
        raise BeingDeletedError(view.id.path)
    former = declared_set(view)
    location = former.location or context.location
    declared = revised_set(former, sent, name=former.name, location=location)
    before, after = former.model_document, declared.model_document
    declaration = _redeclared(tx, view, declared, has_new_model=before != after)
    tx.declare(declaration)
    if before != after:
        tx.declare(_model(tx, declaration, declared))
    _set_policy(tx, declared, by=context.by)
    event_ids: tuple[EventId, ...] = ()
    if before != after and declared.upgrade_mode is UpgradeMode.AUTOMATIC:
        chosen = _unprotected(tx, view)
        event_ids = _bring_to(
            tx,
            chosen,
            declared.model,
            reimaged=chosen if image_of(before) != image_of(after) else (),
            revision=declaration.revision,
            context=context,
        )
    event_ids += _scale(tx, view, declaration, declared, context=context)
    if view.declaration == declaration and len(view.staying) == declared.capacity:
        # The same request was sent before: this one waits for the events that it caused then.
        event_ids = _deletes_under_way(view)
    return Outcome(view=find(tx, view.id), event_ids=event_ids)


def upgrade(
    tx: Transaction,
    view: ScaleSetView,
    instance_ids: Sequence[str] | None,
    *,
    context: AzureContext,
) -> SetOutcome:
    """Bring VMs to the set's latest model."""
    chosen = [m for m in choose(tx, view, instance_ids) if not view.is_latest(m)]
    models = ModelsInUse(tx, view)
    image = image_of(models.latest)
    event_ids = _bring_to(
        tx,
        chosen,
        declared_set(view).model,
        reimaged=[vm for vm in chosen if image_of(models.of(vm)) != image],
        revision=view.revision,
        context=context,
    )
    return Outcome(view=find(tx, view.id), event_ids=event_ids)


def operate(
    tx: Transaction,
    view: ScaleSetView,
    instance_ids: Sequence[str] | None,
    action: Action,
    *,
    context: AzureContext,
) -> SetOutcome:
    chosen = choose(tx, view, instance_ids)
    event_ids = actions.operate(tx, chosen, action, context=context)
    return Outcome(view=view, event_ids=event_ids)


def delete_instances(
    tx: Transaction,
    view: ScaleSetView,
    instance_ids: Sequence[str] | None,
    *,
    force: bool,
    context: AzureContext,
) -> SetOutcome:
    chosen = choose(tx, view, instance_ids)
    _keep_counting(tx, view)
    event_ids = actions.remove(tx, chosen, force=force, context=context)
    return Outcome(view=view, event_ids=event_ids)


def drop(
    tx: Transaction, id_: ResourceId, *, force: bool, context: AzureContext
) -> SetOutcome | None:
    """Delete a set with its VMs; it is gone when its last VM is. None if there is no such set."""
    view = inventory.scale_set(tx, id_)
    if view is None:
        return None
    event_ids = actions.remove(tx, view.vms, force=force, context=context)
    tx.declare(replace(_keep_counting(tx, view), is_going=True))
    if not view.is_going:
        tx.record("withdrawn", by=context.by, cause=view.id.path)
    return Outcome(view=view, event_ids=event_ids)


def _deletes_under_way(view: ScaleSetView) -> tuple[EventId, ...]:
    events = (event for vm in view.vms for event in vm.events)
    return tuple(dict.fromkeys(e.id for e in events if e.type is EventType.TERMINATE))


# --- declarations --------------------------------------------------------------------------------


def _refuse_taken(tx: Transaction, id_: ResourceId) -> None:
    owner = tx.note(_OWNER + id_.name.casefold())
    if owner is not None and not same(owner, id_.path):
        other = inventory.scale_set(tx, ResourceId.parse(owner))
        if other is not None:
            raise SetNameTakenError(id_.name, other.id.path)
    for scope_id in inventory.placement_groups(tx, id_.name):
        for vm in inventory.members(tx, scope_id):
            raise SetNameTakenError(id_.name, inventory.scale_set_id(vm.profile).path)


def _withdraw(tx: Transaction, id_: ResourceId) -> None:
    """Withdraw what is left of a deleted set of this name."""
    tx.withdraw(id_.path)
    for left in list(tx.declarations(f"{id_.path}/")):
        tx.withdraw(left.path)


def _redeclared(
    tx: Transaction, view: ScaleSetView, declared: DeclaredScaleSet, *, has_new_model: bool
) -> Declaration:
    former = _counters(tx, view)
    document = dict(declared.document)
    if came_with_fleet(view.declaration):
        mark(document)
    revision = former.revision + 1 if has_new_model else former.revision
    return replace(former, document=encoded(document), revision=revision)


def _model(tx: Transaction, declaration: Declaration, declared: DeclaredScaleSet) -> Declaration:
    path = model_path(declaration.path, declaration.revision)
    return Declaration(path=path, document=encoded(declared.model_document), created_at=tx.now)


def _set_policy(tx: Transaction, declared: DeclaredScaleSet, *, by: Actor) -> None:
    for scope_id in inventory.placement_groups(tx, declared.name):
        enrollment.set_policy(tx, scope_id, declared.policy, by=by)


def _counters(tx: Transaction, view: ScaleSetView) -> Declaration:
    """The set's declaration; for a set that came with the fleet, an empty one."""
    if view.declaration is not None:
        return view.declaration
    numbers = [int(m.instance_id) for m in view.vms if m.is_instance]
    number = max(numbers, default=len(view.vms) - 1) + 1
    # VMs may have been deleted in other ways than by ARM, and then their numbers were not counted.
    while _was_used(tx, view, number):
        number += 1
    return Declaration(path=view.id.path, document="", created_at=tx.now, next_instance=number)


def _was_used(tx: Transaction, view: ScaleSetView, number: int) -> bool:
    mode = Orchestration.FLEXIBLE if view.is_flexible else Orchestration.UNIFORM
    name, _ = instance_names(ScaleSet(name=view.id.name, capacity=0, orchestration=mode), number)
    return any(
        tx.has_known(scope_id, ResourceName(name))
        for scope_id in inventory.placement_groups(tx, view.id.name)
    )


def _keep_counting(tx: Transaction, view: ScaleSetView) -> Declaration:
    """Called before VMs are deleted, so that their numbers are not given to others."""
    declaration = _counters(tx, view)
    tx.declare(declaration)
    return declaration


# --- VMs -----------------------------------------------------------------------------------------


def _scale(
    tx: Transaction,
    view: ScaleSetView,
    declaration: Declaration,
    declared: DeclaredScaleSet,
    *,
    context: AzureContext,
) -> tuple[EventId, ...]:
    more = declared.capacity - len(view.staying)
    if more > 0:
        _grow(tx, view.id, declaration, declared, more=more, context=context)
    if more >= 0:
        return ()
    protections = protection.of_set(tx, view)
    held = {name for name, each in protections.items() if each.outlives_scale_in}
    protection.refuse_too_small(view.id.name, view.staying, held, wanted=declared.capacity)
    chosen = instances.scale_in(view.staying, -more, protected=held)
    return actions.remove(tx, chosen, force=False, context=context)


def _grow(
    tx: Transaction,
    id_: ResourceId,
    declaration: Declaration,
    declared: DeclaredScaleSet,
    *,
    more: int,
    context: AzureContext,
) -> None:
    where = FleetPlan(
        location=declared.location, resource_group=id_.group, subscription_id=id_.subscription
    )
    instances.grow(
        tx,
        declared,
        where,
        first=declaration.next_instance,
        more=more,
        revision=declaration.revision,
        context=context,
    )
    tx.declare(replace(declaration, next_instance=declaration.next_instance + more))


def _bring_to(
    tx: Transaction,
    vms: Sequence[VmView],
    model: Model,
    *,
    reimaged: Sequence[VmView],
    revision: int,
    context: AzureContext,
) -> tuple[EventId, ...]:
    """`reimaged` are the VMs among them that get a new OS image."""
    event_ids = actions.operate(tx, reimaged, Action.REIMAGE, context=context)
    for vm in vms:
        instances.bring_to(tx, vm, model, revision=revision, by=context.by)
    return event_ids
