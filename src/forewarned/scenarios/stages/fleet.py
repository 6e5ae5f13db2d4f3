"""The VMs of a scenario or a test, made one at a time."""

from functools import partial
from typing import Final

from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, Resource, Scope, ScopeKind
from forewarned.scenarios.model import Vm
from forewarned.service.fleet.declaration import NO_SUBSCRIPTION, UPDATE_DOMAINS
from forewarned.service.fleet.placement import PlannedScope, guid
from forewarned.service.fleet.writes import Step, carry_out
from forewarned.service.ports import Transaction
from forewarned.service.records import Binding, Caller, Profile
from forewarned.service.use_cases import UseCases

_PLACE: Final = "test"
_LOOPBACK: Final = "127.0.0.1"


def scope_of(vm: Vm) -> tuple[ScopeId, ScopeKind]:
    if vm.scale_set is not None:
        return ScopeId(f"vmss/{vm.scale_set}/0"), ScopeKind.PLACEMENT_GROUP
    if vm.availability_set is not None:
        return ScopeId(f"avset/{vm.availability_set}"), ScopeKind.AVAILABILITY_SET
    return ScopeId(f"vm/{vm.name}"), ScopeKind.VIRTUAL_MACHINE


async def make(use_cases: UseCases, vm: Vm, *, by: Actor) -> None:
    """Raises RefusalError."""
    scope_id, kind = scope_of(vm)
    await use_cases.engine.decide(partial(_enroll, vm=vm, scope_id=scope_id, kind=kind, by=by))
    if vm.active:
        caller = Caller(name=ResourceName(vm.name), scope_id=scope_id)
        await use_cases.activation.activate(caller, address=_LOOPBACK)


def _enroll(tx: Transaction, *, vm: Vm, scope_id: ScopeId, kind: ScopeKind, by: Actor) -> None:
    name = ResourceName(vm.name)
    others = len(tx.load(scope_id).resources) if tx.exists(scope_id) else 0
    resource = Resource(
        name=name,
        # Usually each has its own, so that what happens to one host happens to one VM.
        host=HostName(vm.host or f"host-of-{name}"),
        update_domain=others % UPDATE_DOMAINS,
        priority=vm.priority,
        terminate_notice=vm.terminate_notice,
    )
    profile = Profile(
        vm_id=guid(f"vm/{name.casefold()}"),
        subscription_id=NO_SUBSCRIPTION,
        resource_group=_PLACE,
        location=_PLACE,
        size="Standard_D2s_v5",
        computer_name=name,
        scale_set=vm.scale_set or "",
        availability_set=vm.availability_set or "",
        placement_group_id=guid(scope_id) if vm.scale_set else "",
    )
    planned = PlannedScope(
        scope=Scope(id=scope_id, kind=kind, resources={name: resource}),
        # Without an address: requests go by the path, or come from the default VM.
        bindings=(Binding(name=name, scope_id=scope_id, address="", profile=profile),),
    )
    carry_out(tx, Step(planned=(planned,)), by=by)
