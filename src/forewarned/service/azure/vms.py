"""VMs that are resources of their own: stand-alone, in an availability set, in a Flexible set.

As in `scale_sets`, each function is one decision in a transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forewarned.core.errors import Category, RefusalError
from forewarned.core.ids import EventId
from forewarned.core.model import Actor, ScopeKind
from forewarned.service.azure import actions, group_index, instances, inventory, scale_sets
from forewarned.service.azure.actions import Action
from forewarned.service.azure.availability_sets import UnknownAvailabilitySetError
from forewarned.service.azure.context import AzureContext
from forewarned.service.azure.group_index import BeingDeletedError
from forewarned.service.azure.inventory import AvailabilitySetView, Machine, ScaleSetView
from forewarned.service.azure.resource_ids import ResourceId, same
from forewarned.service.errors import NameTakenError
from forewarned.service.fleet import placement
from forewarned.service.fleet.declaration import (
    PLACEMENT_GROUP_SIZE,
    UPDATE_DOMAINS,
    FleetPlan,
    VirtualMachine,
)
from forewarned.service.fleet.layout import Group, Seat
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration


class UnknownMachineError(RefusalError):
    category = Category.NOT_FOUND
    field = "name"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no virtual machine {path}")
        self.path = path


class PropertyChangeError(RefusalError):
    """Some of what a VM is was settled when it was made."""

    category = Category.CONFLICT

    def __init__(self, name: str, field: str) -> None:
        super().__init__(f"{field} of {name!r} can't be changed: delete it and create another")
        self.name = name


class NotFlexibleError(RefusalError):
    """A Uniform set makes its own VMs."""

    category = Category.INVALID
    field = "virtualMachineScaleSet"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is not in orchestration mode Flexible, so no VM can be put into it"
        )
        self.path = path


class OwnPolicyError(RefusalError):
    """A scope has one policy, and the scope of a VM in a set is the set's."""

    category = Category.INVALID
    field = "scheduledEventsPolicy"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"VM {name!r} is in a set and can't have a scheduledEventsPolicy of its own:"
            " declare it on the set"
        )
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMachine:
    declared: VirtualMachine
    location: str
    document: str
    computer_name: str
    availability_set: ResourceId | None = None
    scale_set: ResourceId | None = None
    """A Flexible one."""
    has_policy: bool = False
    """Whether the client declared a policy, rather than took the usual one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSets:
    """What is declared of sets, for as long as the control plane alone can read it. All pure."""

    domains: Callable[[AvailabilitySetView], tuple[int, int]]
    """A set's update and fault domains."""
    is_flexible: Callable[[ScaleSetView], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOutcome:
    machine: Machine
    created: bool = False
    event_ids: tuple[EventId, ...] = ()


def find(snapshot: Snapshot, id_: ResourceId) -> Machine:
    machine = inventory.virtual_machine(snapshot, id_)
    if machine is None:
        raise UnknownMachineError(id_.path)
    return machine


def put(
    tx: Transaction,
    id_: ResourceId,
    revise: Callable[[Machine | None, Declaration | None], WantedMachine],
    sets: ReadingSets,
    *,
    context: AzureContext,
    by: Actor,
) -> MachineOutcome:
    """Create a VM, or change one."""
    machine = inventory.virtual_machine(tx, id_)
    if machine is not None and machine.is_leaving:
        raise BeingDeletedError(id_.path)
    # What is declared of a VM that is gone is not said of one that takes its name.
    former = tx.declaration(id_.path) if machine is not None else None
    wanted = revise(machine, former)
    is_to_be_alone = wanted.availability_set is None and wanted.scale_set is None
    is_alone = is_to_be_alone if machine is None else machine.is_alone
    if wanted.has_policy and not is_alone:
        raise OwnPolicyError(id_.name)
    if machine is None:
        _create(tx, id_, wanted, sets, context=context, by=by)
    else:
        _change(tx, machine, wanted, by=by)
    known = id_ if machine is None else inventory.resource_id(machine)
    created_at = former.created_at if former is not None else tx.now
    tx.declare(Declaration(path=known.path, document=wanted.document, created_at=created_at))
    return MachineOutcome(machine=find(tx, id_), created=machine is None)


def operate(
    tx: Transaction, id_: ResourceId, action: Action, *, context: AzureContext, by: Actor
) -> MachineOutcome:
    machine = find(tx, id_)
    event_ids = actions.operate(tx, [machine], action, context=context, by=by)
    return MachineOutcome(machine=machine, event_ids=event_ids)


def drop(
    tx: Transaction, id_: ResourceId, *, force: bool, context: AzureContext, by: Actor
) -> MachineOutcome | None:
    """None where there is no such VM."""
    machine = inventory.virtual_machine(tx, id_)
    if machine is None:
        return None
    event_ids = actions.remove(tx, [machine], force=force, context=context, by=by)
    return MachineOutcome(machine=machine, event_ids=event_ids)


def _create(
    tx: Transaction,
    id_: ResourceId,
    wanted: WantedMachine,
    sets: ReadingSets,
    *,
    context: AzureContext,
    by: Actor,
) -> None:
    group_index.require(tx, id_.subscription, id_.group)
    taken = tx.binding(id_.name)
    if taken is not None:
        raise NameTakenError(taken.name, taken.scope_id)
    where = FleetPlan(
        location=wanted.location, resource_group=id_.group, subscription_id=id_.subscription
    )
    revision = 0
    if wanted.availability_set is not None:
        group = _in_availability_set(tx, wanted, wanted.availability_set, sets)
    elif wanted.scale_set is not None:
        view = scale_sets.find(tx, wanted.scale_set)
        # Its model is its own: there is nothing of the set's to bring it to before that moves on.
        revision = view.revision
        group = _in_scale_set(tx, wanted, view, sets)
    else:
        group = Group(
            id=f"vm/{wanted.declared.name}",
            kind=ScopeKind.VIRTUAL_MACHINE,
            path=(),
            policy=wanted.declared.policy,
            seats=[_seat(wanted)],
        )
    placement.seat(tx, group, where, revision=revision, context=context, by=by)


def _in_availability_set(
    tx: Transaction,
    wanted: WantedMachine,
    id_: ResourceId,
    sets: ReadingSets,
) -> Group:
    view = inventory.availability_set(tx, id_)
    if view is None:
        raise UnknownAvailabilitySetError(id_.path)
    update_domains, fault_domains = sets.domains(view)
    here = [machine.resource for machine in view.machines]
    seat = _seat(
        wanted,
        update_domain=placement.least_used([vm.update_domain for vm in here], update_domains),
        fault_domain=placement.least_used([vm.fault_domain for vm in here], fault_domains),
    )
    return Group(
        id=inventory.availability_scope(tx, view.id.name),
        kind=ScopeKind.AVAILABILITY_SET,
        path=(),
        policy=view.policy,
        seats=[seat],
        availability_set=view.id.name,
    )


def _in_scale_set(
    tx: Transaction, wanted: WantedMachine, view: ScaleSetView, sets: ReadingSets
) -> Group:
    if not sets.is_flexible(view):
        raise NotFlexibleError(view.id.path)
    if view.is_going:
        raise BeingDeletedError(view.id.path)
    number = 0
    while tx.exists(scope_id := inventory.placement_group(view.id.name, number)):
        if len(tx.load(scope_id).resources) < PLACEMENT_GROUP_SIZE:
            break
        number += 1
    here = [machine.resource.update_domain for machine in view.machines]
    seat = _seat(wanted, update_domain=placement.least_used(here, UPDATE_DOMAINS))
    return Group(
        id=scope_id,
        kind=ScopeKind.PLACEMENT_GROUP,
        path=(),
        policy=view.policy,
        seats=[seat],
        scale_set=view.id.name,
        is_flexible=True,
    )


def _seat(wanted: WantedMachine, *, update_domain: int = 0, fault_domain: int = 0) -> Seat:
    declared = wanted.declared
    return Seat(
        name=declared.name,
        computer_name=wanted.computer_name,
        model=declared.model,
        path=(),
        update_domain=update_domain,
        fault_domain=fault_domain,
        zone=declared.zone,
    )


def _change(tx: Transaction, machine: Machine, wanted: WantedMachine, *, by: Actor) -> None:
    profile = machine.profile
    wanted_set = "" if wanted.availability_set is None else wanted.availability_set.name
    if not same(profile.availability_set, wanted_set):
        raise PropertyChangeError(machine.name, "availabilitySet")
    wanted_scale_set = "" if wanted.scale_set is None else wanted.scale_set.name
    if not same(profile.scale_set, wanted_scale_set):
        raise PropertyChangeError(machine.name, "virtualMachineScaleSet")
    if not same(profile.location, wanted.location):
        raise PropertyChangeError(machine.name, "location")
    if profile.zone != wanted.declared.zone:
        raise PropertyChangeError(machine.name, "zones")
    if profile.computer_name != wanted.computer_name:
        raise PropertyChangeError(machine.name, "osProfile.computerName")
    if machine.resource.priority is not wanted.declared.model.priority:
        raise PropertyChangeError(machine.name, "priority")
    instances.bring_to(tx, machine, wanted.declared.model, revision=profile.model_revision, by=by)
    if machine.is_alone:
        placement.set_policy(tx, machine.scope_id, wanted.declared.policy, by=by)
