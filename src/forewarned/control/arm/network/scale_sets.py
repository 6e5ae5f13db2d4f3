"""The network interfaces and public addresses that a scale set's model gives each of its instances.

They are resources of no one else: `az vmss nic list` looks here, not among the networks.
"""

from collections.abc import Iterator
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.compute.instances import INSTANCE
from forewarned.control.arm.compute.instances import find as find_instance
from forewarned.control.arm.compute.scale_set_views import (
    instance_path,
    interface_path,
)
from forewarned.control.arm.compute.scale_sets import SET, set_id
from forewarned.control.arm.compute.scale_sets import find as find_set
from forewarned.control.arm.errors import resource_not_found
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import Operation, read
from forewarned.service.azure.equipment import dashed, mac_address
from forewarned.service.azure.inventory import ScaleSetView, VmView
from forewarned.service.azure.models.documents import Json, object_in, objects_in
from forewarned.service.azure.models.interfaces import (
    instance_public_path,
    interface_configurations,
    public_address,
)
from forewarned.service.azure.models.scale_set import VM_PROFILE, ModelsInUse
from forewarned.service.azure.resource_ids import same
from forewarned.service.ports import Snapshot


def list_interfaces(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(page(_of_set(snapshot, asked), asked, _key))


def list_interfaces_of_instance(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(page(_of_instance(snapshot, asked), asked, _key))


def show_interface(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    wanted = asked.path["interface"]
    for each in _of_instance(snapshot, asked):
        if same(each["name"], wanted):
            return ok(each)
    path = f"{set_id(asked).path}/virtualMachines/{asked.path['instance']}"
    raise resource_not_found(f"{path}/networkInterfaces/{wanted}")


def list_addresses(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """The public ones."""
    found = (each for interface in _of_set(snapshot, asked) for each in _addresses(interface))
    return ok(page(found, asked, _key))


def _of_set(snapshot: Snapshot, asked: Asked) -> Iterator[Json]:
    view = find_set(snapshot, asked)
    return _interfaces(snapshot, view, view.vms)


def _of_instance(snapshot: Snapshot, asked: Asked) -> Iterator[Json]:
    view, vm = find_instance(snapshot, asked)
    return _interfaces(snapshot, view, (vm,))


def _key(shown: Json) -> str:
    return str(shown["id"]).casefold()


# --- one by one ----------------------------------------------------------------------------------


def _interfaces(snapshot: Snapshot, view: ScaleSetView, vms: tuple[VmView, ...]) -> Iterator[Json]:
    """VMs of a Flexible set have interfaces that are resources of their own, if any."""
    models = ModelsInUse(snapshot, view)
    for vm in vms:
        if vm.is_instance:
            network = object_in(object_in(models.of(vm), VM_PROFILE), "networkProfile")
            for number, declared in enumerate(interface_configurations(network)):
                yield _interface(vm, instance_path(view, vm), declared, number)


def _interface(vm: VmView, instance: str, declared: Json, number: int) -> Json:
    """`declared` is its configuration in the instance's model. The primary one is number 0."""
    path = interface_path(instance, declared)
    addresses = [] if number else [vm.binding.private_address]
    properties = object_in(declared, "properties")
    configurations = objects_in(properties, "ipConfigurations") or [{"name": "ipconfig1"}]
    mac = mac_address(vm.binding.private_address, vm.profile.vm_id, number)
    return {
        "id": path,
        "name": declared["name"],
        "properties": {
            "provisioningState": "Succeeded",
            "primary": number == 0,
            "macAddress": dashed(mac),
            "virtualMachine": {"id": instance},
            "ipConfigurations": [
                _configuration(path, each, addresses[at : at + 1])
                for at, each in enumerate(configurations)
            ],
        },
    }


def _configuration(interface: str, declared: Json, addresses: list[str]) -> Json:
    """`addresses` is the VM's own, or nothing: no more is known of it."""
    path = f"{interface}/ipConfigurations/{declared.get('name')}"
    properties = object_in(declared, "properties")
    shown: Json = {
        "provisioningState": "Succeeded",
        "primary": bool(addresses),
        "privateIPAllocationMethod": "Dynamic",
        "privateIPAddressVersion": "IPv4",
    }
    for address in filter(None, addresses):
        shown["privateIPAddress"] = address
    if "subnet" in properties:
        shown["subnet"] = properties["subnet"]
    public = instance_public_path(interface, declared)
    if public:
        shown["publicIPAddress"] = {"id": public}
    return {"id": path, "name": declared.get("name"), "properties": shown}


def _addresses(interface: Json) -> Iterator[Json]:
    for each in interface["properties"]["ipConfigurations"]:
        public = each["properties"].get("publicIPAddress")
        if public is not None:
            path: str = public["id"]
            yield {
                "id": path,
                "name": path.rpartition("/")[2],
                "properties": {
                    "provisioningState": "Succeeded",
                    "ipAddress": public_address(path),
                    "publicIPAllocationMethod": "Dynamic",
                    "publicIPAddressVersion": "IPv4",
                    "ipConfiguration": {"id": each["id"]},
                },
            }


_INTERFACES: Final = f"{INSTANCE}/networkInterfaces"

OPERATIONS: Final[tuple[Operation, ...]] = (
    read(f"{SET}/networkInterfaces", list_interfaces),
    read(f"{SET}/publicIPAddresses", list_addresses),
    read(_INTERFACES, list_interfaces_of_instance),
    read(f"{_INTERFACES}/{{interface}}", show_interface),
)
