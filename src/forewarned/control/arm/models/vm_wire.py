"""What clients write when they declare a VM, read into what is wanted.

Invariant: these functions are pure. What they refuse has changed nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from forewarned.control.arm.errors import invalid_parameter
from forewarned.control.arm.fields import Fields, at, changes, merged_resource, put_at, without
from forewarned.control.arm.models.origins import ORIGIN, came_with_fleet, mark
from forewarned.control.arm.models.policies import POLICY, read_policy, settle_policy
from forewarned.control.arm.models.profiles import (
    USUAL_SIZE,
    read_eviction_policy,
    read_location,
    read_notices,
    read_os_type,
    read_priority,
    read_tags,
    read_zones,
    refuse_notices,
    refuse_old_version,
    refuse_os_type,
    refuse_tags,
    refuse_zones,
    settle_notices,
)
from forewarned.control.arm.models.vm_views import Declared, decoded, settings
from forewarned.control.arm.requests import Json
from forewarned.service.azure.inventory import Machine, ScaleSetView
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    SCALE_SETS,
    InvalidResourceIdError,
    ResourceId,
    same,
)
from forewarned.service.azure.vms import WantedMachine
from forewarned.service.fleet.declaration import FleetPlan, Model, VirtualMachine
from forewarned.service.fleet.validation import declaration_faults

_AVAILABILITY_SET: Final = "availabilitySet"
_SCALE_SET: Final = "virtualMachineScaleSet"
_LONGEST_COMPUTER_NAME: Final = 64
_LONGEST_ID: Final = 1024

READ_ONLY: Final = (
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
"""What clients send back that they were shown."""
_SECRET: Final = (
    "properties.osProfile.adminPassword",
    "properties.osProfile.customData",
    "properties.osProfile.secrets",
    "properties.osProfile.windowsConfiguration.additionalUnattendContent.content",
    "properties.userData",
)
"""What nobody is shown again, so it is not kept."""


def wanted(
    id_: ResourceId,
    body: Mapping[str, Any],
    machine: Machine | None,
    declared: Declared,
    *,
    api_version: str,
    usual_location: str,
) -> WantedMachine:
    """The VM that a client asks for. `machine` is what there is of it."""
    sent = without(body, *READ_ONLY, *_SECRET)
    refuse_old_version(Fields(sent).object("properties"), api_version, "VirtualMachineProperties")
    before = {} if machine is None else settings(machine, declared)
    document = merged_resource(before, sent)
    resource = Fields(document)
    properties = resource.object("properties")
    _refuse_invalid(Fields(changes(before, document)), resource)
    _keep_image(document, before)
    here = None if machine is None else machine.profile.location
    location = read_location(resource, here=here) or usual_location
    availability_set = _reference(properties, _AVAILABILITY_SET, AVAILABILITY_SETS, near=id_)
    scale_set = _reference(properties, _SCALE_SET, SCALE_SETS, near=id_)
    zone = _zone(resource)
    _refuse_two_places(availability_set, scale_set, zone)
    wanted_vm = VirtualMachine(
        name=id_.name if machine is None else machine.name,
        zone=zone,
        model=_model(resource, properties),
        policy=read_policy(properties),
    )
    for fault in declaration_faults(FleetPlan(vms=(wanted_vm,))):
        raise fault.error
    if machine is not None and came_with_fleet(declared.declaration):
        mark(document)
    return WantedMachine(
        declared=wanted_vm,
        location=location,
        document=_kept(document, location),
        computer_name=properties.object("osProfile").word("computerName") or wanted_vm.name,
        availability_set=availability_set,
        scale_set=scale_set,
        has_policy=POLICY in properties,
    )


def _keep_image(document: Json, before: Json) -> None:
    """A VM's image is settled, and clients that mean no change send none, or null."""
    image = "properties.storageProfile.imageReference"
    if at(document, image) is None and (former := at(before, image)) is not None:
        put_at(document, image, former)


def _refuse_invalid(news: Fields, resource: Fields) -> None:
    """What a client changes must be such as Azure has it. Raises ArmError."""
    properties = news.object("properties")
    refuse_tags(news, resource)
    refuse_zones(news)
    refuse_notices(properties)
    refuse_os_type(properties)
    properties.object("hardwareProfile").text("vmSize")
    properties.object("osProfile").text("computerName", longest=_LONGEST_COMPUTER_NAME)
    storage, network = properties.object("storageProfile"), properties.object("networkProfile")
    storage.object("imageReference")
    storage.object("osDisk").object("managedDisk")
    storage.objects("dataDisks")
    network.objects("networkInterfaces")


def _model(resource: Fields, properties: Fields) -> Model:
    priority = read_priority(properties)
    notices = read_notices(properties, priority=priority)
    size = properties.object("hardwareProfile").word("vmSize")
    return Model(
        size=USUAL_SIZE if size is None else size,
        os_type=read_os_type(properties),
        priority=priority,
        eviction_policy=read_eviction_policy(properties),
        terminate_notice=notices.terminate,
        image_notice=notices.image,
        tags=read_tags(resource),
    )


def _zone(resource: Fields) -> str:
    zones = read_zones(resource)
    if len(zones) > 1:
        raise resource.wrong("zones", "expected one zone: a VM is in no more")
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
        raise invalid_parameter(holder.where("id"), str(error)) from None
    if not same(id_.type, type_):
        raise holder.wrong("id", f"expected the id of one of {type_}")
    if not same(id_.group_path, near.group_path):
        raise holder.wrong("id", f"expected one in the VM's own resource group {near.group!r}")
    return ResourceId(subscription=id_.subscription, group=id_.group, type=type_, name=id_.name)


def _refuse_two_places(
    availability_set: ResourceId | None, scale_set: ResourceId | None, zone: str
) -> None:
    if availability_set is None:
        return
    where = f"properties.{_AVAILABILITY_SET}"
    if scale_set is not None:
        raise invalid_parameter(
            where, "A virtual machine can't be in an availability set and in a scale set."
        )
    if zone:
        raise invalid_parameter(
            where, "A virtual machine in an availability set can't be in a zone."
        )


def _kept(document: Json, location: str) -> str:
    """The document as it is given back; what follows from the VM is put over it again."""
    kept = dict(document)
    kept["location"] = location
    settle_policy(kept)
    settle_notices(kept, Fields(kept).object("properties"))
    if Fields(kept).object("properties").text("priority") is not None:
        priority = read_priority(Fields(kept).object("properties"))
        put_at(kept, "properties.priority", priority)
    return msgspec.json.encode(kept).decode()


def is_flexible(view: ScaleSetView) -> bool:
    """A set without VMs is what it was declared to be."""
    mode = Fields(decoded(view.declaration)).object("properties").text("orchestrationMode")
    return view.is_flexible if mode is None else same(mode, "Flexible")
