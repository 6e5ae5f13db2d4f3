"""The fleet as the control plane names it: VMs, scale sets, availability sets.

VMs, scopes and open events are the truth. What is shown of a set follows from its VMs, so the two
can't disagree, and a fleet that came from a file is there without having been declared here.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Event, EventType, Policy, Resource, Scope, ScopeKind
from forewarned.service.azure import group_index
from forewarned.service.azure.models.profiles import stored_location
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    MACHINES,
    SCALE_SETS,
    ResourceId,
    group_path,
    same,
)
from forewarned.service.ports import Snapshot
from forewarned.service.records import Binding, Declaration, Profile

_CLOUD_SERVICE: Final = "service/"
"""How the scope of a cloud service begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VmView:
    """A VM with the open events that name it."""

    binding: Binding
    resource: Resource
    events: tuple[Event, ...]
    policy: Policy
    """Its scope's."""
    is_alone: bool
    """Whether its scope is its own."""

    @property
    def name(self) -> ResourceName:
        return self.binding.name

    @property
    def scope_id(self) -> ScopeId:
        return self.binding.scope_id

    @property
    def profile(self) -> Profile:
        return self.binding.profile

    @property
    def is_leaving(self) -> bool:
        return any(event.type is EventType.TERMINATE for event in self.events)

    @property
    def is_role(self) -> bool:
        """Whether it is an instance of a cloud service's role, which ARM does not show as a VM."""
        return bool(cloud_service(self.binding))

    @property
    def is_instance(self) -> bool:
        """Whether it has an instance id: VMs of a Uniform set exist only as parts of it."""
        return bool(self.profile.scale_set) and not self.profile.is_flexible

    @property
    def instance_id(self) -> str:
        """The number of an instance, or the name of a VM in a Flexible set, as in Azure."""
        return self.name.rpartition("_")[2] if self.is_instance else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSetView:
    id: ResourceId
    """In the letter case it was declared in."""
    location: str
    declaration: Declaration | None
    """None for a set that came with the fleet and was never declared here."""
    vms: tuple[VmView, ...]
    policy: Policy
    is_flexible: bool

    @property
    def staying(self) -> tuple[VmView, ...]:
        """Its capacity: those that are not being deleted."""
        return tuple(vm for vm in self.vms if not vm.is_leaving)

    @property
    def revision(self) -> int:
        return 0 if self.declaration is None else self.declaration.revision

    @property
    def is_going(self) -> bool:
        return self.declaration is not None and self.declaration.is_going

    def is_latest(self, vm: VmView) -> bool:
        """Whether the VM is on the set's latest model."""
        return vm.profile.model_revision == self.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilitySetView:
    id: ResourceId
    location: str
    declaration: Declaration | None
    vms: tuple[VmView, ...]
    policy: Policy


# --- VMs -----------------------------------------------------------------------------------------


def by_name(snapshot: Snapshot, name: str) -> VmView | None:
    """By name, in any letter case, wherever it is."""
    binding = snapshot.binding(name)
    if binding is None:
        return None
    return _view(snapshot.load(binding.scope_id), binding)


def virtual_machine(snapshot: Snapshot, id_: ResourceId) -> VmView | None:
    """A VM that is a resource of its own. Instances of Uniform sets and roles are not."""
    found = by_name(snapshot, id_.name)
    if found is None or not _is_own(found.binding):
        return None
    return found if _is_in(found.profile, id_.subscription, id_.group) else None


def virtual_machines(
    snapshot: Snapshot, subscription: str, group: str | None = None
) -> Iterator[VmView]:
    """Of one resource group or all; those of Uniform sets are listed with their sets.

    Those of cloud services are listed nowhere: they are no resources of Microsoft.Compute.
    """
    for binding in own_bindings(snapshot, subscription, group):
        yield _view(snapshot.load(binding.scope_id), binding)


def own_bindings(
    snapshot: Snapshot, subscription: str, group: str | None = None
) -> Iterator[Binding]:
    """The bindings of the same VMs, without loading their scopes."""
    for binding in list(snapshot.bindings()):
        if _is_own(binding) and _is_in(binding.profile, subscription, group):
            yield binding


def roles(snapshot: Snapshot, subscription: str, group: str) -> list[VmView]:
    """The instances of cloud services in a resource group."""
    return [
        _view(snapshot.load(binding.scope_id), binding)
        for binding in list(snapshot.bindings())
        if cloud_service(binding) and _is_in(binding.profile, subscription, group)
    ]


def members(snapshot: Snapshot, scope_id: ScopeId) -> list[VmView]:
    return _members(snapshot, snapshot.load(scope_id))


def cloud_service(binding: Binding) -> str:
    """The name of the cloud service that it is an instance of; empty for none."""
    is_role = binding.scope_id.startswith(_CLOUD_SERVICE)
    return binding.scope_id.removeprefix(_CLOUD_SERVICE) if is_role else ""


def resource_id(vm: VmView | Binding) -> ResourceId:
    """Of a VM that is a resource of its own."""
    return _beside(vm.profile, MACHINES, vm.name)


def scale_set_id(profile: Profile) -> ResourceId:
    """Of the scale set that a VM is in."""
    return _beside(profile, SCALE_SETS, profile.scale_set)


def availability_set_id(profile: Profile) -> ResourceId:
    """Of the availability set that a VM is in."""
    return _beside(profile, AVAILABILITY_SETS, profile.availability_set)


def _beside(profile: Profile, type_: str, name: str) -> ResourceId:
    """In a VM's own resource group, where its sets are, too."""
    return ResourceId(
        subscription=profile.subscription_id, group=profile.resource_group, type=type_, name=name
    )


# --- sets ----------------------------------------------------------------------------------------


def placement_group(name: str, number: int) -> ScopeId:
    return ScopeId(f"vmss/{name}/{number}")


def availability_scope(snapshot: Snapshot, name: str) -> ScopeId:
    """The scope of an availability set's VMs: the same one for every letter case of its name."""
    scope_id = ScopeId(f"avset/{name}")
    here = (each for each in snapshot.scope_ids(scope_id) if same(each, scope_id))
    return next(here, scope_id)


def placement_groups(snapshot: Snapshot, name: str) -> list[ScopeId]:
    """The scopes of a scale set that exist."""
    return snapshot.scope_ids(f"vmss/{name}/")


def scale_set(snapshot: Snapshot, id_: ResourceId) -> ScaleSetView | None:
    return _scale_set(snapshot, id_, _scopes_of_set(snapshot, id_.name))


def _scale_set(snapshot: Snapshot, id_: ResourceId, scopes: Sequence[Scope]) -> ScaleSetView | None:
    declaration = snapshot.declaration(id_.path)
    vms = tuple(
        each
        for scope in scopes
        for each in _members(snapshot, scope)
        if _is_in(each.profile, id_.subscription, id_.group)
    )
    if not vms and (declaration is None or declaration.is_going):
        return None
    known = (
        ResourceId.parse(declaration.path)
        if declaration is not None
        else scale_set_id(vms[0].profile)
    )
    is_flexible = vms[0].profile.is_flexible if vms else False
    return ScaleSetView(
        id=known,
        location=_location(vms, declaration),
        declaration=declaration,
        vms=vms,
        policy=scopes[0].policy if scopes else Policy(),
        is_flexible=is_flexible,
    )


def _location(vms: Sequence[VmView], declaration: Declaration | None) -> str:
    """That of its VMs, or the declared one if it has none at the moment."""
    return vms[0].profile.location if vms else stored_location(declaration) or ""


def scale_sets(
    snapshot: Snapshot,
    subscription: str,
    group: str | None = None,
    *,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> Iterator[ScaleSetView]:
    """In order of name, each loaded when it is asked for: a caller that wants few loads few.

    `is_wanted` is asked beforehand, with the name in lower case.
    """
    declared = list(_declared(snapshot, SCALE_SETS, subscription, group))
    known = {id_.path.casefold() for id_ in declared}
    names = {scope_id.split("/")[1].casefold() for scope_id in snapshot.scope_ids("vmss/")}
    candidates: list[tuple[str, ResourceId | None]] = [(name, None) for name in names]
    candidates += [(id_.name.casefold(), id_) for id_ in declared]
    for name, id_ in sorted(candidates, key=itemgetter(0)):
        if not is_wanted(name):
            continue
        found = scale_set(snapshot, id_) if id_ else _undeclared(snapshot, name, known)
        if found is not None and _is_of(found.id, subscription, group):
            yield found


def availability_set(snapshot: Snapshot, id_: ResourceId) -> AvailabilitySetView | None:
    """None, too, if it has no VMs and its resource group was deleted: it went with the group."""
    declaration = snapshot.declaration(id_.path)
    wanted = f"avset/{id_.name}"
    scopes = [snapshot.load(each) for each in snapshot.scope_ids(wanted) if same(each, wanted)]
    vms = tuple(
        each
        for scope in scopes
        for each in _members(snapshot, scope)
        if _is_in(each.profile, id_.subscription, id_.group)
    )
    if not vms and (
        declaration is None or group_index.find(snapshot, id_.subscription, id_.group) is None
    ):
        return None
    return AvailabilitySetView(
        id=(
            availability_set_id(vms[0].profile)
            if declaration is None
            else ResourceId.parse(declaration.path)
        ),
        location=_location(vms, declaration),
        declaration=declaration,
        vms=vms,
        policy=scopes[0].policy if scopes else Policy(),
    )


def availability_sets(
    snapshot: Snapshot, subscription: str, group: str | None = None
) -> Iterator[AvailabilitySetView]:
    """In order of path."""
    ids = {
        id_.path.casefold(): id_
        for id_ in _declared(snapshot, AVAILABILITY_SETS, subscription, group)
    }
    for scope_id in snapshot.scope_ids("avset/"):
        for each in members(snapshot, scope_id)[:1]:
            if _is_in(each.profile, subscription, group):
                id_ = availability_set_id(each.profile)
                ids.setdefault(id_.path.casefold(), id_)
    for _, id_ in sorted(ids.items()):
        found = availability_set(snapshot, id_)
        if found is not None:
            yield found


def taken(numbers: Sequence[int], usual: int) -> int:
    """How many domains there are, judged by the domains that VMs are in.

    VMs of a fleet take turns in all domains: if any has two VMs, there are no more domains.
    """
    here = max(numbers, default=-1) + 1
    return here if len(numbers) > here else max(here, usual)


# --- parts ---------------------------------------------------------------------------------------


def _view(scope: Scope, binding: Binding) -> VmView:
    return VmView(
        binding=binding,
        resource=scope.resources[binding.name],
        events=tuple(event for event in scope.events.values() if binding.name in event.resources),
        policy=scope.policy,
        is_alone=scope.kind is ScopeKind.VIRTUAL_MACHINE,
    )


def _is_own(binding: Binding) -> bool:
    """Whether it is a resource of its own."""
    profile = binding.profile
    is_instance = bool(profile.scale_set) and not profile.is_flexible
    return not is_instance and not cloud_service(binding)


def _members(snapshot: Snapshot, scope: Scope) -> list[VmView]:
    bindings = (snapshot.binding(name) for name in scope.resources)
    return [_view(scope, binding) for binding in bindings if binding is not None]


def _is_in(profile: Profile, subscription: str, group: str | None) -> bool:
    return same(profile.subscription_id, subscription) and (
        group is None or same(profile.resource_group, group)
    )


def _undeclared(snapshot: Snapshot, name: str, known: Collection[str]) -> ScaleSetView | None:
    """The set of this name that came with the fleet, unless its path is a known one."""
    scopes = _scopes_of_set(snapshot, name)
    bindings = (snapshot.binding(vm) for scope in scopes for vm in scope.resources)
    # Any of its VMs tells where it belongs.
    first = next((binding for binding in bindings if binding is not None), None)
    if first is None or scale_set_id(first.profile).path.casefold() in known:
        return None
    return _scale_set(snapshot, scale_set_id(first.profile), scopes)


def _scopes_of_set(snapshot: Snapshot, name: str) -> list[Scope]:
    return [snapshot.load(each) for each in placement_groups(snapshot, name)]


def _is_of(id_: ResourceId, subscription: str, group: str | None) -> bool:
    return same(id_.subscription, subscription) and (group is None or same(id_.group, group))


def _declared(
    snapshot: Snapshot, type_: str, subscription: str, group: str | None
) -> Iterator[ResourceId]:
    prefix = group_path(subscription, group or "")
    depth = ResourceId(subscription="s", group="g", type=type_, name="n").path.count("/")
    for declaration in snapshot.declarations(prefix):
        if declaration.path.count("/") != depth:
            continue
        id_ = ResourceId.parse(declaration.path)
        if same(id_.type, type_) and (group is None or same(id_.group, group)):
            yield id_
