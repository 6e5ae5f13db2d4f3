"""The VMs of a scale set: their numbers, names, places and models, and which of them go first."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from forewarned.core import membership
from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor, Scope
from forewarned.service.azure import enrollment, inventory
from forewarned.service.azure.context import AzureContext
from forewarned.service.azure.inventory import VmView
from forewarned.service.engine import save
from forewarned.service.fleet import layout
from forewarned.service.fleet.declaration import PLACEMENT_GROUP_SIZE, FleetPlan, Model, ScaleSet
from forewarned.service.fleet.layout import ScopeLayout, VmLayout
from forewarned.service.ports import Transaction


def scale_in(
    staying: Sequence[VmView], fewer: int, *, protected: Collection[ResourceName] = ()
) -> list[VmView]:
    """Which VMs go: of the zone with the most of them, the one with the highest number.

    It is Azure's default order, as far as it is documented: zones stay balanced, the newest go. The
    protected ones stay, so there may be fewer to go than wanted.
    """
    order = {vm.name: place for place, vm in enumerate(staying)}

    def age(vm: VmView) -> int:
        return int(vm.instance_id) if vm.is_instance else order[vm.name]

    left = sorted(staying, key=age)
    gone: list[VmView] = []
    while len(gone) < fewer and (free := [m for m in left if m.name not in protected]):
        zones = [vm.profile.zone for vm in left]
        crowded = max(sorted({m.profile.zone for m in free}), key=zones.count)
        newest = max((m for m in free if m.profile.zone == crowded), key=age)
        left.remove(newest)
        gone.append(newest)
    return gone


def grow(
    tx: Transaction,
    declared: ScaleSet,
    where: FleetPlan,
    *,
    first: int,
    more: int,
    revision: int,
    context: AzureContext,
) -> None:
    """Add VMs, numbered from `first` on. The first placement group is created even for no VMs."""
    numbers = range(first, first + more)
    vms = [layout.instance(declared, number, tx.binding) for number in numbers]
    for group in _groups(tx, declared, vms):
        enrollment.enroll(tx, group, where, revision=revision, context=context)


def _groups(tx: Transaction, declared: ScaleSet, vms: list[VmLayout]) -> list[ScopeLayout]:
    """The VMs, in placement groups that have room; the first group even for no VMs."""
    groups: list[ScopeLayout] = []
    number = 0
    while vms or not groups:
        scope_id = inventory.placement_group(declared.name, number)
        held = len(tx.load(scope_id).resources) if tx.exists(scope_id) else 0
        room = PLACEMENT_GROUP_SIZE - held
        if room > 0:
            groups.append(layout.placement_group(declared, number, vms[:room]))
            vms = vms[room:]
        number += 1
    return groups


def bring_to(tx: Transaction, vm: VmView, model: Model, *, revision: int = 0, by: Actor) -> None:
    """Give a VM another model. Its priority (Spot or not) stays."""
    scope = tx.load(vm.scope_id)
    resource = replace(
        vm.resource,
        eviction_policy=model.eviction_policy,
        terminate_notice=model.terminate_notice,
    )
    planned = Scope(
        id=scope.id, kind=scope.kind, resources={vm.name: resource}, policy=scope.policy
    )
    save(tx, membership.enroll(scope, planned, now=tx.now), by=by)
    profile = replace(
        vm.profile,
        size=model.size,
        os_type=model.os_type,
        tags=model.tags,
        image_notice=model.image_notice,
        model_revision=revision,
    )
    tx.bind(replace(vm.binding, profile=profile))
