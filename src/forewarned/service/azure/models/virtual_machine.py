"""A VM as it is declared: what it is, over what clients said of it.

Invariant: what a client declared it gets back, and where that and the VM differ it is told of the
VM. A VM that came with the fleet and was never declared here has a document all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from forewarned.core.model import Priority
from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import VmView
from forewarned.service.azure.models import policies, profiles
from forewarned.service.azure.models.defaults import complete_vm
from forewarned.service.azure.models.documents import (
    Fields,
    InvalidPropertyError,
    Json,
    at,
    changes,
    decoded,
    merged_resource,
    put_at,
    without,
)
from forewarned.service.azure.models.origin import ORIGIN
from forewarned.service.azure.models.policies import POLICY
from forewarned.service.azure.models.profiles import EVENTS_PROFILE, Notices
from forewarned.service.azure.models.scale_set import VM_PROFILE, model_path
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    SCALE_SETS,
    InvalidResourceIdError,
    ResourceId,
    same,
)
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from forewarned.service.fleet.validation import declaration_mistakes
from forewarned.service.ports import Snapshot

_AVAILABILITY_SET: Final = "availabilitySet"
_SCALE_SET: Final = "virtualMachineScaleSet"
_LONGEST_COMPUTER_NAME: Final = 64
_LONGEST_ID: Final = 1024
_DERIVED: Final = (
    "id",
    "name",
    "type",
    "etag",
    "systemData",
    "resources",
    "properties.vmId",
    "properties.provisioningState",
    "properties.timeCreated",
    "properties.instanceView",
    "properties.storageProfile.imageReference.exactVersion",
    ORIGIN,
)
# Azure never shows these again, so there is no need to store them.
_SECRET: Final = (
    "properties.osProfile.adminPassword",
    "properties.osProfile.customData",
    "properties.osProfile.secrets",
    "properties.osProfile.windowsConfiguration.additionalUnattendContent.content",
    "properties.userData",
)
# The parts of a set's model that a VM made from it has, too.
_FROM_MODEL: Final = ("storageProfile", "osProfile", "securityProfile", "billingProfile")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredVm(VirtualMachine):
    location: str
    computer_name: str
    availability_set: ResourceId | None
    scale_set: ResourceId | None
    """A Flexible one."""
    has_policy: bool
    """Whether a policy is declared, rather than the usual one taken."""
    document: Json
    """All that is declared. The other fields are what the service understands."""


# --- as it is ------------------------------------------------------------------------------------


def document_of(snapshot: Snapshot, vm: VmView) -> Json:
    """All that a client may declare of the VM, as it is now. It is complete."""
    declared = decoded(snapshot.declaration(inventory.resource_id(vm).path))
    document = without(declared or _from_set(snapshot, vm), ORIGIN)
    profile = vm.profile
    document["location"] = profile.location
    document["tags"] = dict(profile.tags)
    if profile.zone:
        document["zones"] = [profile.zone]
    put_at(document, "properties.hardwareProfile.vmSize", profile.size)
    put_at(document, "properties.storageProfile.osDisk.osType", profile.os_type)
    put_at(document, "properties.osProfile.computerName", profile.computer_name)
    if vm.resource.priority is Priority.SPOT:
        put_at(document, "properties.priority", vm.resource.priority)
        put_at(document, "properties.evictionPolicy", vm.resource.eviction_policy)
    if profile.availability_set:
        id_ = inventory.availability_set_id(profile)
        put_at(document, f"properties.{_AVAILABILITY_SET}", {"id": id_.path})
    if profile.scale_set:
        id_ = inventory.scale_set_id(profile)
        put_at(document, f"properties.{_SCALE_SET}", {"id": id_.path})
    complete_vm(document, inventory.resource_id(vm), os_type=profile.os_type)
    return _with_policy(_with_notices(document, vm), vm)


def profile_of(snapshot: Snapshot, vm: VmView) -> Json:
    """The `virtualMachineProfile` that the VM was made from; empty where no client declared one."""
    profile = vm.profile
    if not profile.scale_set or not profile.model_revision:
        return {}
    set_path = inventory.scale_set_id(profile).path
    declaration = snapshot.declaration(model_path(set_path, profile.model_revision))
    found: Json = decoded(declaration).get(VM_PROFILE, {})
    return found


def _from_set(snapshot: Snapshot, vm: VmView) -> Json:
    """The parts of the set's model that a VM has, too; empty for a VM in no set."""
    vm_profile = profile_of(snapshot, vm)
    parts = {name: vm_profile[name] for name in _FROM_MODEL if name in vm_profile}
    return without({"properties": parts}, "properties.osProfile.computerNamePrefix")


def _with_notices(document: Json, vm: VmView) -> Json:
    """The VM's set may have brought it to a model with other notices than it declares."""
    priority = vm.resource.priority
    here = Notices(terminate=vm.resource.terminate_notice, image=vm.profile.image_notice)
    if profiles.read_notices(Fields(document).object("properties"), priority=priority) == here:
        return document
    return with_property(document, EVENTS_PROFILE, profiles.show_notices(here))


def _with_policy(document: Json, vm: VmView) -> Json:
    """A VM in a set has the set's policy."""
    if not vm.is_alone:
        return without(document, f"properties.{POLICY}")
    if policies.read_policy(Fields(document).object("properties")) == vm.policy:
        return document
    return with_property(document, POLICY, policies.show_policy(vm.policy))


def with_property(document: Json, name: str, shown: Json | None) -> Json:
    """The document with another property of this name; without it for None."""
    changed = without(document, f"properties.{name}")
    if shown is not None:
        put_at(changed, f"properties.{name}", shown)
    return changed


# --- as a client wants it ------------------------------------------------------------------------


def revised_vm(
    snapshot: Snapshot,
    id_: ResourceId,
    vm: VmView | None,
    sent: Mapping[str, Any],
    *,
    location: str,
) -> DeclaredVm:
    """What a `PUT` or `PATCH` makes of a VM. `location` is that of a new VM which says none."""
    before = {} if vm is None else document_of(snapshot, vm)
    document = merged_resource(before, without(sent, *_DERIVED, *_SECRET))
    resource = Fields(document)
    properties = resource.object("properties")
    _refuse_invalid(Fields(changes(before, document)), resource)
    _keep_image(document, before)
    here = None if vm is None else vm.profile.location
    location = profiles.read_location(resource, here=here) or location
    name = id_.name if vm is None else vm.name
    size = properties.object("hardwareProfile").word("vmSize")
    revised = DeclaredVm(
        name=name,
        zone=_zone(resource),
        model=profiles.read_model(resource, properties, size=size),
        policy=policies.read_policy(properties),
        location=location,
        computer_name=properties.object("osProfile").word("computerName") or name,
        availability_set=_reference(properties, _AVAILABILITY_SET, AVAILABILITY_SETS, near=id_),
        scale_set=_reference(properties, _SCALE_SET, SCALE_SETS, near=id_),
        has_policy=POLICY in properties,
        document=_settled(document, location),
    )
    _refuse_two_places(revised)
    for mistake in declaration_mistakes(FleetPlan(vms=(revised,))):
        raise mistake.error
    return revised


def _keep_image(document: Json, before: Json) -> None:
    """A VM's image can't change, and clients that want no change send none, or null."""
    image = "properties.storageProfile.imageReference"
    if at(document, image) is None and (former := at(before, image)) is not None:
        put_at(document, image, former)


def _refuse_invalid(news: Fields, resource: Fields) -> None:
    """What a client changes must be valid in Azure. Raises InvalidPropertyError."""
    properties = news.object("properties")
    profiles.refuse_tags(news, resource)
    profiles.refuse_zones(news)
    profiles.refuse_notices(properties)
    profiles.refuse_os_type(properties)
    properties.object("hardwareProfile").text("vmSize")
    properties.object("osProfile").text("computerName", longest=_LONGEST_COMPUTER_NAME)
    storage, network = properties.object("storageProfile"), properties.object("networkProfile")
    storage.object("imageReference")
    storage.object("osDisk").object("managedDisk")
    storage.objects("dataDisks")
    network.objects("networkInterfaces")


def _zone(resource: Fields) -> str:
    zones = profiles.read_zones(resource)
    if len(zones) > 1:
        raise resource.wrong("zones", "expected at most one zone")
    return zones[0] if zones else ""


def _reference(properties: Fields, name: str, type_: str, *, near: ResourceId) -> ResourceId | None:
    """The set that a VM is to be in. It must be in the VM's own resource group, as in Azure."""
    holder = properties.object(name)
    text = holder.text("id", longest=_LONGEST_ID)
    if text is None:
        return None
    try:
        id_ = ResourceId.parse(text)
    except InvalidResourceIdError as error:
        raise InvalidPropertyError(holder.where("id"), str(error)) from None
    if not same(id_.type, type_):
        raise holder.wrong("id", f"expected the id of a resource of type {type_}")
    if not same(id_.group_path, near.group_path):
        raise holder.wrong("id", f"expected one in the VM's own resource group {near.group!r}")
    return ResourceId(subscription=id_.subscription, group=id_.group, type=type_, name=id_.name)


def _refuse_two_places(revised: DeclaredVm) -> None:
    if revised.availability_set is None:
        return
    where = f"properties.{_AVAILABILITY_SET}"
    if revised.scale_set is not None:
        raise InvalidPropertyError(
            where, "A virtual machine can't be in an availability set and in a scale set."
        )
    if revised.zone:
        raise InvalidPropertyError(
            where, "A virtual machine in an availability set can't be in a zone."
        )


def _settled(document: Json, location: str) -> Json:
    """The document as it is stored, with values of the types that they are shown in."""
    settled = dict(document)
    settled["location"] = location
    policies.settle_policy(settled)
    profiles.settle_notices(settled, Fields(settled).object("properties"))
    properties = Fields(settled).object("properties")
    if properties.text("priority") is not None:
        put_at(settled, "properties.priority", profiles.read_priority(properties))
    return settled
