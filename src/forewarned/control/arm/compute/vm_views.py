"""VMs as clients read them: what was declared, and what came of it."""

from forewarned.control.arm.compute.statuses import provisioning_state, vm_view
from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import VmView
from forewarned.service.azure.models.defaults import exact_version, hide_unknown_os
from forewarned.service.azure.models.documents import Json, at, put_at
from forewarned.service.azure.models.origin import came_with_fleet
from forewarned.service.azure.models.virtual_machine import document_of
from forewarned.service.azure.resource_ids import MACHINES
from forewarned.service.ports import Snapshot


def shown(snapshot: Snapshot, vm: VmView, *, with_instance_view: bool = False) -> Json:
    path = inventory.resource_id(vm).path
    document = document_of(snapshot, vm)
    show_exact_version(document)
    hide_unknown_os(document["properties"])
    put_at(document, "properties.vmId", vm.profile.vm_id)
    put_at(document, "properties.provisioningState", provisioning_state(vm))
    declaration = snapshot.declaration(path)
    if declaration is not None and not came_with_fleet(declaration):
        put_at(document, "properties.timeCreated", declaration.created_at.isoformat())
    if with_instance_view:
        put_at(document, "properties.instanceView", instance_view(vm))
    return {"id": path, "name": vm.name, "type": MACHINES, **document}


def show_exact_version(document: Json) -> None:
    """The version of a VM's image; its model may only say `latest`."""
    image = at(document, "properties.storageProfile.imageReference")
    if isinstance(image, dict) and (version := exact_version(image)):
        put_at(document, "properties.storageProfile.imageReference.exactVersion", version)


def instance_view(vm: VmView) -> Json:
    view: Json = {**vm_view(vm), "disks": []}
    if vm.profile.availability_set:
        view["platformUpdateDomain"] = vm.resource.update_domain
        view["platformFaultDomain"] = vm.resource.fault_domain
    return view
