"""What a source's listing writes: VMs that it brings into the fleet, changes, or takes out.

Transaction functions: they may be run again, and keep nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from forewarned.core import lifecycle, membership
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, EventStatus, Policy, Scope, ScopeKind
from forewarned.service.azure.enrollment import least_used, open_scope
from forewarned.service.engine import save
from forewarned.service.fleet.addresses import plain_address
from forewarned.service.fleet.declaration import (
    FAULT_DOMAINS,
    UPDATE_DOMAINS,
    FleetPlan,
    Model,
    VirtualMachine,
    binding_address,
)
from forewarned.service.fleet.layout import ScopeLayout, VmLayout
from forewarned.service.fleet.placement import NEVER_GIVEN, planned_scope
from forewarned.service.fleet.validation import is_name, mistakes
from forewarned.service.ports import Transaction
from forewarned.service.records import Binding, Profile
from forewarned.service.sources.listing import ListedVm

_NAME_TAKEN: Final = "another VM of the fleet has its name: rename one of them"


class OwnVm(NamedTuple):
    """A VM that a source has brought, as the fleet has it."""

    binding: Binding
    host: HostName


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of some VMs. Those that were left out are in neither."""

    added: tuple[ResourceName, ...] = ()
    changed: tuple[ResourceName, ...] = ()
    removed: tuple[ResourceName, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Why, by UUID."""


def add_vms(
    tx: Transaction, listed: Sequence[ListedVm], *, source: str, where: FleetPlan, by: Actor
) -> Written:
    """`where` says subscription, resource group and location."""
    added: list[ResourceName] = []
    left_out: dict[str, str] = {}
    for vm in listed:
        if why := objection(vm):
            left_out[vm.vm_id] = why
        elif tx.binding(vm.name) is not None:
            left_out[vm.vm_id] = _NAME_TAKEN
        else:
            added.append(_add(tx, vm, source=source, where=where, by=by))
    return Written(added=tuple(added), left_out=left_out)


def is_as_listed(found: OwnVm, vm: ListedVm) -> bool:
    """Whether the fleet has a VM as its platform lists it."""
    binding = found.binding
    return (
        found.host == vm.host
        and binding.address == _own_address(vm)
        and binding.profile == _profile(binding, vm)
    )


def change_vms(
    tx: Transaction,
    listed: Sequence[ListedVm],
    *,
    own: Mapping[str, OwnVm],
    source: str,
    by: Actor,
) -> Written:
    """`own` are the VMs as they were compared, by UUID. They keep their names, and their scopes."""
    changed: list[ResourceName] = []
    left_out: dict[str, str] = {}
    there: list[tuple[ListedVm, Binding]] = []
    for vm in listed:
        binding = _still_own(tx, own[vm.vm_id], source=source)
        if binding is None:
            continue
        # A name may be one that the fleet can't have: it stays what it was.
        if why := objection(replace(vm, name=binding.name)):
            left_out[vm.vm_id] = why
            continue
        there.append((vm, binding))
    for vm, binding in there:
        # VMs may have exchanged addresses: each gives up its own before any gets another's.
        if binding.address != _own_address(vm):
            tx.bind(replace(binding, address=""))
    for vm, binding in there:
        scope = tx.load(binding.scope_id)
        moved = membership.move(scope, binding.name, HostName(vm.host), now=tx.now)
        after = replace(
            binding,
            address=_free_address(tx, vm, name=binding.name),
            profile=_profile(binding, vm),
        )
        if moved.transitions:
            save(tx, moved, by=by)
        if after != binding:
            tx.bind(after)
        if moved.transitions or after != binding:
            changed.append(binding.name)
    return Written(changed=tuple(changed), left_out=left_out)


def remove_vms(tx: Transaction, gone: Sequence[OwnVm], *, source: str, by: Actor) -> Written:
    removed: list[ResourceName] = []
    for each in gone:
        binding = _still_own(tx, each, source=source)
        if binding is not None:
            scope = tx.load(binding.scope_id)
            save(tx, lifecycle.remove(scope, binding.name, now=tx.now), by=by)
            removed.append(binding.name)
    return Written(removed=tuple(removed))


def disown(tx: Transaction, bindings: Sequence[Binding], *, source: str) -> None:
    """The VMs stay in the fleet, and are no source's any more."""
    for former in bindings:
        binding = tx.binding(former.name)
        if binding is not None and binding.profile.source == source:
            tx.bind(replace(binding, profile=replace(binding.profile, source="")))


def _still_own(tx: Transaction, compared: OwnVm, *, source: str) -> Binding | None:
    """None if the VM is no longer what it was compared as, so that nothing may be written.

    Since then it may have been replaced, been taken over, or got an event: that is the actuator's.
    """
    vm_id = compared.binding.profile.vm_id
    binding = tx.binding(compared.binding.name)
    if binding is None or (binding.profile.source, binding.profile.vm_id) != (source, vm_id):
        return None
    scope = tx.load(binding.scope_id)
    vm = scope.resources[binding.name]
    is_started = any(
        event.status is EventStatus.STARTED and vm.name in event.resources
        for event in scope.events.values()
    )
    return None if is_started or vm.host != compared.host else binding


def objection(vm: ListedVm) -> str | None:
    """Why a VM can't be in the fleet as it is listed."""
    declared = VirtualMachine(
        name=vm.name, vm_id=vm.vm_id, port_mark=vm.port_mark, interface=vm.interface, host=vm.host
    )
    found = mistakes(FleetPlan(vms=(declared,)))
    return str(found[0].error) if found else None


def _add(
    tx: Transaction, vm: ListedVm, *, source: str, where: FleetPlan, by: Actor
) -> ResourceName:
    layout = _layout(tx, vm, source=source)
    scope_id = ScopeId(layout.id)
    open_scope(tx, scope_id, layout.kind, layout.policy)
    scope = tx.load(scope_id)
    planned = planned_scope(
        replace(layout, policy=scope.policy),
        where,
        hosts=_ListedPlace(),
        addresses=_ListedPlace(_free_address(tx, vm, name=vm.name)),
    )
    change = membership.enroll(scope, planned.scope, placed=planned.placed, now=tx.now)
    save(tx, change, by=by)
    tx.bind_all(planned.bindings)
    return ResourceName(vm.name)


def _layout(tx: Transaction, vm: ListedVm, *, source: str) -> ScopeLayout:
    set_name = vm.availability_set if is_name(vm.availability_set) else ""
    scope_id = f"avset/{set_name}" if set_name else f"vm/{vm.name}"
    update_domain, fault_domain = 0, 0
    if set_name and tx.exists(ScopeId(scope_id)):
        update_domain, fault_domain = _domains(tx.load(ScopeId(scope_id)), vm.host)
    layout = VmLayout(
        name=vm.name,
        computer_name=vm.name,
        model=Model(actuator=source),
        update_domain=update_domain,
        fault_domain=fault_domain,
        zone=vm.zone if is_name(vm.zone) else "",
        vm_id=vm.vm_id,
        source=source,
        address=_address(vm),
        port_mark=vm.port_mark,
        interface=vm.interface,
        host=vm.host,
    )
    return ScopeLayout(
        id=scope_id,
        kind=ScopeKind.AVAILABILITY_SET if set_name else ScopeKind.VIRTUAL_MACHINE,
        policy=Policy(),
        vms=[layout],
        availability_set=set_name,
    )


def _domains(scope: Scope, host: str) -> tuple[int, int]:
    """Those of the VMs that are on this host already, or the least used ones."""
    for other in scope.resources.values():
        if other.host == host:
            return other.update_domain, other.fault_domain
    here = scope.resources.values()
    return (
        least_used([vm.update_domain for vm in here], UPDATE_DOMAINS),
        least_used([vm.fault_domain for vm in here], FAULT_DOMAINS),
    )


class _ListedPlace:
    """The host and the address that a platform says: none is made up."""

    def __init__(self, address: str = "") -> None:
        self._address = address

    def host(self, vm: VmLayout) -> HostName:
        return HostName(vm.host or "")

    def address(self, _: VmLayout) -> str:
        return self._address


def _free_address(tx: Transaction, vm: ListedVm, *, name: str) -> str:
    """Empty if it has none, or another VM is known by it: then it can't read events."""
    wanted = _own_address(vm)
    holder = tx.holder(wanted) if wanted else None
    return wanted if holder is None or holder == name else ""


def _own_address(vm: ListedVm) -> str:
    """What it is to be known by; empty if there is nothing that it could be."""
    known_by = binding_address(_address(vm), vm.port_mark)
    return "" if known_by is None or known_by in NEVER_GIVEN else known_by


def _profile(binding: Binding, vm: ListedVm) -> Profile:
    return replace(
        binding.profile,
        private_address=_private_address(vm),
        interface=vm.interface,
        zone=vm.zone if is_name(vm.zone) else "",
    )


def _private_address(vm: ListedVm) -> str:
    return "" if vm.port_mark is None else _address(vm) or ""


def _address(vm: ListedVm) -> str | None:
    """None where the platform says none, or something that is no address."""
    try:
        return plain_address(vm.address) if vm.address else None
    except ValueError:
        return None
