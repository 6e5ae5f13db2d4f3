"""The network interfaces and public addresses that a scale set's model gives each of its instances.

They are resources of no one else: `az vmss nic list` looks here, not among the networks.
"""

from collections.abc import Iterator
from typing import Any, Final

from notbefore.control.arm import network
from notbefore.control.arm.answers import ArmAnswer, ok
from notbefore.control.arm.errors import resource_not_found
from notbefore.control.arm.instances import INSTANCE
from notbefore.control.arm.instances import find as find_instance
from notbefore.control.arm.paging import page
from notbefore.control.arm.requests import Asked, Json
from notbefore.control.arm.routing import Operation, read
from notbefore.control.arm.scale_set_views import Models, instance_path, show_instance
from notbefore.control.arm.scale_sets import SET, set_id
from notbefore.control.arm.scale_sets import find as find_set
from notbefore.control.arm.services import ArmServices
from notbefore.service.inventory import Machine, ScaleSetView
from notbefore.service.ports import Snapshot
from notbefore.service.resource_ids import same


async def list_interfaces(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> list[Json]:
        view = find_set(snapshot, set_id(asked))
        return list(_interfaces(snapshot, view, view.machines))

    return ok(page(await services.decider.ask(question), asked, _key))


async def list_interfaces_of_instance(services: ArmServices, asked: Asked) -> ArmAnswer:
    return ok(page(await _of_instance(services, asked), asked, _key))


async def show_interface(services: ArmServices, asked: Asked) -> ArmAnswer:
    wanted = asked.path["interface"]
    for each in await _of_instance(services, asked):
        if same(each["name"], wanted):
            return ok(each)
    path = f"{set_id(asked).path}/virtualMachines/{asked.path['instance']}"
    raise resource_not_found(f"{path}/networkInterfaces/{wanted}")


async def list_addresses(services: ArmServices, asked: Asked) -> ArmAnswer:
    """The public ones."""

    def question(snapshot: Snapshot) -> list[Json]:
        view = find_set(snapshot, set_id(asked))
        interfaces = _interfaces(snapshot, view, view.machines)
        return [each for interface in interfaces for each in _addresses(interface)]

    return ok(page(await services.decider.ask(question), asked, _key))


async def _of_instance(services: ArmServices, asked: Asked) -> list[Json]:
    def question(snapshot: Snapshot) -> list[Json]:
        view, machine = find_instance(snapshot, asked)
        return list(_interfaces(snapshot, view, (machine,)))

    return await services.decider.ask(question)


def _key(shown: Json) -> str:
    return str(shown["id"]).casefold()


# --- one by one ----------------------------------------------------------------------------------


def _interfaces(
    snapshot: Snapshot, view: ScaleSetView, machines: tuple[Machine, ...]
) -> Iterator[Json]:
    """VMs of a Flexible set have interfaces that are resources of their own, if any."""
    models = Models(snapshot, view)
    for machine in machines:
        if machine.is_instance:
            instance = show_instance(view, machine, models.of(machine))["properties"]
            declared = _objects(instance["networkProfileConfiguration"], _CONFIGURATIONS)
            listed = instance["networkProfile"]["networkInterfaces"]
            for interface in listed:
                yield _interface(view, machine, interface, declared)


def _interface(view: ScaleSetView, machine: Machine, listed: Json, declared: list[Json]) -> Json:
    """`listed` is how the instance names it, `declared` are those of its model."""
    path: str = listed["id"]
    name = path.rpartition("/")[2]
    found: Json = next((each for each in declared if same(str(each.get("name")), name)), {})
    properties = _object(found, "properties")
    is_primary = bool(listed["properties"]["primary"])
    addresses = [machine.binding.address] if is_primary else []
    configurations = _objects(properties, "ipConfigurations") or [{"name": "ipconfig1"}]
    return {
        "id": path,
        "name": name,
        "properties": {
            "provisioningState": "Succeeded",
            "primary": is_primary,
            "macAddress": network.mac_of(path),
            "virtualMachine": {"id": instance_path(view, machine)},
            "ipConfigurations": [
                _configuration(path, each, addresses[at : at + 1])
                for at, each in enumerate(configurations)
            ],
        },
    }


def _configuration(interface: str, declared: Json, addresses: list[str]) -> Json:
    """`addresses` is the VM's own, or nothing: no more is known of it."""
    path = f"{interface}/ipConfigurations/{declared.get('name')}"
    properties = _object(declared, "properties")
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
    public = _object(properties, "publicIPAddressConfiguration")
    if public:
        shown["publicIPAddress"] = {"id": f"{path}/publicIPAddresses/{public.get('name')}"}
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
                    "ipAddress": network.public_address_of(path),
                    "publicIPAllocationMethod": "Dynamic",
                    "publicIPAddressVersion": "IPv4",
                    "ipConfiguration": {"id": each["id"]},
                },
            }


_CONFIGURATIONS: Final = "networkInterfaceConfigurations"


def _value(of: Json, name: str) -> Any:  # JSON
    """Models are kept as clients send them: `az` says `publicipaddressconfiguration`."""
    return next((value for key, value in of.items() if same(key, name)), None)


def _object(of: Json, name: str) -> Json:
    found = _value(of, name)
    return found if isinstance(found, dict) else {}


def _objects(of: Json, name: str) -> list[Json]:
    found = _value(of, name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


_INTERFACES: Final = f"{INSTANCE}/networkInterfaces"

OPERATIONS: Final[tuple[Operation, ...]] = (
    read(f"{SET}/networkInterfaces", list_interfaces),
    read(f"{SET}/publicIPAddresses", list_addresses),
    read(_INTERFACES, list_interfaces_of_instance),
    read(f"{_INTERFACES}/{{interface}}", show_interface),
)
