"""Scale sets and their instances as clients read them: what was declared, and what came of it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from forewarned.control.arm.compute.statuses import (
    provisioning_state,
    provisioning_status,
    statuses,
    vm_view,
)
from forewarned.core.model import Priority
from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import ScaleSetView, VmView
from forewarned.service.azure.models.defaults import exact_version, hide_unknown_os
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.models.interfaces import interface_configurations
from forewarned.service.azure.models.origin import came_with_fleet
from forewarned.service.azure.models.scale_set import VM_PROFILE, document_of
from forewarned.service.azure.resource_ids import MACHINES, SCALE_SETS
from forewarned.service.fleet.placement import guid

_INSTANCES: Final = f"{SCALE_SETS}/virtualMachines"
_TIER: Final = "Standard"


# --- sets ----------------------------------------------------------------------------------------


def show_set(view: ScaleSetView, *, state: str | None = None) -> Json:
    """`state` is the provisioning state, if it does not follow from the set."""
    document = document_of(view)
    properties = {
        **document.get("properties", {}),
        "provisioningState": state or set_state(view),
        "uniqueId": _unique_id(view),
    }
    if VM_PROFILE in properties:
        properties[VM_PROFILE] = dict(properties[VM_PROFILE])
        hide_unknown_os(properties[VM_PROFILE])
    if view.declaration is not None and not came_with_fleet(view.declaration):
        properties["timeCreated"] = view.declaration.created_at.isoformat()
    return {
        "location": view.location,
        **document,
        "id": view.id.path,
        "name": view.id.name,
        "type": SCALE_SETS,
        "tags": document.get("tags", {}),
        "sku": {"tier": _TIER, **document.get("sku", {}), "capacity": len(view.staying)},
        "properties": properties,
    }


def set_state(view: ScaleSetView) -> str:
    if view.is_going:
        return "Deleting"
    return "Updating" if len(view.staying) < len(view.vms) else "Succeeded"


def show_set_statuses(view: ScaleSetView) -> Json:
    counts = Counter(each["code"] for vm in view.vms for each in statuses(vm))
    status = provisioning_status(set_state(view))
    if view.declaration is not None:
        status["time"] = view.declaration.created_at.isoformat()
    return {
        "virtualMachine": {
            "statusesSummary": [
                {"code": code, "count": count} for code, count in sorted(counts.items())
            ]
        },
        "extensions": [],
        "statuses": [status],
        "orchestrationServices": [],
    }


def _unique_id(view: ScaleSetView) -> str:
    """Different for a set that replaces a deleted one."""
    declaration = view.declaration
    is_new = declaration is not None and not came_with_fleet(declaration)
    made = declaration.created_at.isoformat() if declaration is not None and is_new else ""
    return guid(f"{view.id.path.casefold()}/{made}")


# --- instances -----------------------------------------------------------------------------------


def instance_path(view: ScaleSetView, vm: VmView) -> str:
    """VMs of a Flexible set are resources of their own."""
    if vm.is_instance:
        return f"{view.id.path}/virtualMachines/{vm.instance_id}"
    return inventory.resource_id(vm).path


def show_instance(
    view: ScaleSetView, vm: VmView, model: Mapping[str, Any], *, with_statuses: bool = False
) -> Json:
    profile = vm.profile
    path = instance_path(view, vm)
    properties: Json = {
        "latestModelApplied": view.is_latest(vm),
        "modelDefinitionApplied": "VirtualMachineScaleSet",
        "vmId": profile.vm_id,
        "provisioningState": provisioning_state(vm),
        "hardwareProfile": {"vmSize": profile.size},
        **_parts(vm, model.get(VM_PROFILE, {}), path),
    }
    if with_statuses:
        properties["instanceView"] = show_instance_statuses(vm)
    shown: Json = {
        "id": path,
        "name": vm.name,
        "instanceId": vm.instance_id,
        "type": _INSTANCES if vm.is_instance else MACHINES,
        "location": profile.location,
        "tags": dict(profile.tags),
        "sku": {"name": profile.size, "tier": _TIER},
        "properties": properties,
    }
    if profile.zone:
        shown["zones"] = [profile.zone]
    return shown


def show_instance_statuses(vm: VmView) -> Json:
    shown: Json = {
        "platformUpdateDomain": vm.resource.update_domain,
        "platformFaultDomain": vm.resource.fault_domain,
        **vm_view(vm),
    }
    if vm.is_instance:
        shown["placementGroupId"] = vm.profile.placement_group_id
    return shown


def _parts(vm: VmView, vm_profile: Mapping[str, Any], path: str) -> Json:
    """The parts of its model that a VM has, with the VM's own names."""
    storage = vm_profile.get("storageProfile", {})
    disk = storage.get("osDisk", {})
    os_profile = {
        name: value
        for name, value in vm_profile.get("osProfile", {}).items()
        if name != "computerNamePrefix"
    }
    network = vm_profile.get("networkProfile", {})
    own_disk = {
        **disk,
        "osType": vm.profile.os_type,
        "name": f"{vm.name}_OsDisk_1",
    }
    parts: Json = {
        "storageProfile": {**storage, **_image(storage), "osDisk": own_disk},
        "osProfile": {**os_profile, "computerName": vm.profile.computer_name},
        "networkProfile": {"networkInterfaces": _interfaces(network, path)},
        "networkProfileConfiguration": network,
    }
    hide_unknown_os(parts)
    if "securityProfile" in vm_profile:
        parts["securityProfile"] = vm_profile["securityProfile"]
    if vm.resource.priority is Priority.SPOT:
        parts["priority"] = vm.resource.priority
        parts["evictionPolicy"] = vm.resource.eviction_policy
    return parts


def _image(storage: Mapping[str, Any]) -> Json:
    image = storage.get("imageReference")
    version = exact_version(image) if isinstance(image, dict) else ""
    return {"imageReference": {**(image or {}), "exactVersion": version}} if version else {}


def _interfaces(network: Mapping[str, Any], path: str) -> list[Json]:
    return [
        {"id": interface_path(path, each), "properties": {"primary": at == 0}}
        for at, each in enumerate(interface_configurations(network))
    ]


def interface_path(instance: str, configuration: Json) -> str:
    """Of the interface that an instance has from a configuration. `instance` is its path."""
    return f"{instance}/networkInterfaces/{configuration['name']}"
