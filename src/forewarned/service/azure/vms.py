"""VMs that are resources of their own: stand-alone, in an availability set, in a Flexible set.

As in `scale_sets`, each function is one decision in a transaction.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from forewarned.core.errors import Category, RefusalError
from forewarned.core.model import ScopeKind
from forewarned.service.azure import (
    actions,
    availability_sets,
    enrollment,
    group_index,
    instances,
    inventory,
    scale_sets,
)
from forewarned.service.azure.actions import Action
from forewarned.service.azure.context import AzureContext, Outcome
from forewarned.service.azure.group_index import BeingDeletedError
from forewarned.service.azure.inventory import ScaleSetView, VmView
from forewarned.service.azure.models.availability_set import declared_availability_set
from forewarned.service.azure.models.documents import PropertyChangeError, encoded
from forewarned.service.azure.models.origin import came_with_fleet, mark
from forewarned.service.azure.models.scale_set import declared_set
from forewarned.service.azure.models.virtual_machine import DeclaredVm, revised_vm
from forewarned.service.azure.resource_ids import ResourceId, same
from forewarned.service.errors import NameTakenError
from forewarned.service.fleet.declaration import (
    PLACEMENT_GROUP_SIZE,
    UPDATE_DOMAINS,
    FleetPlan,
    Orchestration,
)
from forewarned.service.fleet.layout import ScopeLayout, VmLayout
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration

VmOutcome = Outcome[VmView]


class UnknownVmError(RefusalError, category=Category.NOT_FOUND, field="name"):
    def __init__(self, path: str) -> None:
        super().__init__(f"there is no virtual machine {path}")
        self.path = path


class NotFlexibleError(RefusalError, category=Category.INVALID, field="virtualMachineScaleSet"):
    """A Uniform set makes its own VMs."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is not in orchestration mode Flexible, so no VM can be added to it"
        )
        self.path = path


class OwnPolicyError(RefusalError, category=Category.INVALID, field="scheduledEventsPolicy"):
    """A scope has one policy, and the scope of a VM in a set is the set's."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"VM {name!r} is in a set and can't have its own scheduledEventsPolicy: declare it on "
            "the set"
        )
        self.name = name


def find(snapshot: Snapshot, id_: ResourceId) -> VmView:
    vm = inventory.virtual_machine(snapshot, id_)
    if vm is None:
        raise UnknownVmError(id_.path)
    return vm


def put(
    tx: Transaction, id_: ResourceId, sent: Mapping[str, Any], *, context: AzureContext
) -> VmOutcome:
    """Create a VM, or change one. `sent` is a resource of ARM, or a part of one.

    Raises InvalidPropertyError, PropertyChangeError.
    """
    vm = inventory.virtual_machine(tx, id_)
    if vm is None:
        return _create(tx, id_, sent, context=context)
    return change(tx, vm, sent, context=context)


def change(
    tx: Transaction, vm: VmView, sent: Mapping[str, Any], *, context: AzureContext
) -> VmOutcome:
    id_ = inventory.resource_id(vm)
    if vm.is_leaving:
        raise BeingDeletedError(id_.path)
    declared = revised_vm(tx, id_, vm, sent, location=context.location)
    if declared.has_policy and not vm.is_alone:
        raise OwnPolicyError(vm.name)
    _refuse_changes(vm, declared)
    revision = vm.profile.model_revision
    instances.bring_to(tx, vm, declared.model, revision=revision, by=context.by)
    if vm.is_alone:
        enrollment.set_policy(tx, vm.scope_id, declared.policy, by=context.by)
    former = tx.declaration(id_.path)
    document = dict(declared.document)
    if came_with_fleet(former):
        mark(document)
    created_at = tx.now if former is None else former.created_at
    tx.declare(Declaration(path=id_.path, document=encoded(document), created_at=created_at))
    return Outcome(view=find(tx, id_))


def _create(
    tx: Transaction, id_: ResourceId, sent: Mapping[str, Any], *, context: AzureContext
) -> VmOutcome:
    group = group_index.require(tx, id_.subscription, id_.group)
    known = replace(id_, group=group.name)
    declared = revised_vm(tx, known, None, sent, location=group.location or context.location)
    is_alone = declared.availability_set is None and declared.scale_set is None
    if declared.has_policy and not is_alone:
        raise OwnPolicyError(known.name)
    taken = tx.binding(known.name)
    if taken is not None:
        raise NameTakenError(taken.name, taken.scope_id)
    _place(tx, known, declared, context=context)
    document = encoded(declared.document)
    tx.declare(Declaration(path=known.path, document=document, created_at=tx.now))
    return Outcome(view=find(tx, known), created=True)


def operate(tx: Transaction, vm: VmView, action: Action, *, context: AzureContext) -> VmOutcome:
    event_ids = actions.operate(tx, [vm], action, context=context)
    return Outcome(view=vm, event_ids=event_ids)


def drop(
    tx: Transaction, id_: ResourceId, *, force: bool, context: AzureContext
) -> VmOutcome | None:
    """None if there is no such VM."""
    vm = inventory.virtual_machine(tx, id_)
    if vm is None:
        return None
    event_ids = actions.remove(tx, [vm], force=force, context=context)
    return Outcome(view=vm, event_ids=event_ids)


def _place(
    tx: Transaction, id_: ResourceId, declared: DeclaredVm, *, context: AzureContext
) -> None:
    where = FleetPlan(
        location=declared.location, resource_group=id_.group, subscription_id=id_.subscription
    )
    revision = 0
    if declared.availability_set is not None:
        layout = _in_availability_set(tx, declared, declared.availability_set)
    elif declared.scale_set is not None:
        view = scale_sets.find(tx, declared.scale_set)
        # Its model is its own: the set has nothing to bring it to until the set's model changes.
        revision = view.revision
        layout = _in_scale_set(tx, declared, view)
    else:
        layout = ScopeLayout(
            id=f"vm/{declared.name}",
            kind=ScopeKind.VIRTUAL_MACHINE,
            policy=declared.policy,
            vms=[_vm_layout(declared)],
        )
    enrollment.enroll(tx, layout, where, revision=revision, context=context)


def _in_availability_set(tx: Transaction, declared: DeclaredVm, id_: ResourceId) -> ScopeLayout:
    view = availability_sets.find(tx, id_)
    vm_set = declared_availability_set(view)
    here = [vm.resource for vm in view.vms]
    vm = _vm_layout(
        declared,
        update_domain=enrollment.least_used(
            [vm.update_domain for vm in here], vm_set.update_domains
        ),
        fault_domain=enrollment.least_used([vm.fault_domain for vm in here], vm_set.fault_domains),
    )
    return ScopeLayout(
        id=inventory.availability_scope(tx, view.id.name),
        kind=ScopeKind.AVAILABILITY_SET,
        policy=view.policy,
        vms=[vm],
        availability_set=view.id.name,
    )


def _in_scale_set(tx: Transaction, declared: DeclaredVm, view: ScaleSetView) -> ScopeLayout:
    if declared_set(view).orchestration is not Orchestration.FLEXIBLE:
        raise NotFlexibleError(view.id.path)
    if view.is_going:
        raise BeingDeletedError(view.id.path)
    number = 0
    while tx.exists(scope_id := inventory.placement_group(view.id.name, number)):
        if len(tx.load(scope_id).resources) < PLACEMENT_GROUP_SIZE:
            break
        number += 1
    here = [vm.resource.update_domain for vm in view.vms]
    vm = _vm_layout(declared, update_domain=enrollment.least_used(here, UPDATE_DOMAINS))
    return ScopeLayout(
        id=scope_id,
        kind=ScopeKind.PLACEMENT_GROUP,
        policy=view.policy,
        vms=[vm],
        scale_set=view.id.name,
        is_flexible=True,
    )


def _vm_layout(declared: DeclaredVm, *, update_domain: int = 0, fault_domain: int = 0) -> VmLayout:
    return VmLayout(
        name=declared.name,
        computer_name=declared.computer_name,
        model=declared.model,
        update_domain=update_domain,
        fault_domain=fault_domain,
        zone=declared.zone,
    )


def _refuse_changes(vm: VmView, declared: DeclaredVm) -> None:
    """Some properties of a VM are settled when it is created."""
    profile = vm.profile
    availability_set = "" if declared.availability_set is None else declared.availability_set.name
    scale_set = "" if declared.scale_set is None else declared.scale_set.name
    for is_same, path in (
        (same(profile.availability_set, availability_set), "availabilitySet"),
        (same(profile.scale_set, scale_set), "virtualMachineScaleSet"),
        (same(profile.location, declared.location), "location"),
        (profile.zone == declared.zone, "zones"),
        (profile.computer_name == declared.computer_name, "osProfile.computerName"),
        (vm.resource.priority is declared.model.priority, "priority"),
    ):
        if not is_same:
            raise PropertyChangeError(path)
