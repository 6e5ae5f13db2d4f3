"""What a VM is told about itself, by api-version. Pure.

Every primitive is a string, and one that has no value is empty. A field is absent from versions
older than the one that introduced it.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from forewarned.core.model import Priority
from forewarned.metadata.instance_versions import METADATA_VERSIONS
from forewarned.metadata.routes import Format, ReadInstance
from forewarned.service.azure.equipment import Interface
from forewarned.service.azure.inventory import cloud_service
from forewarned.service.records import About

Node = str | list["Node"] | dict[str, "Node"]
Field = Callable[[About], Node]


class NoSuchElementError(Exception):
    """The path names nothing in this version."""


class LeafFormatError(Exception):
    """A single value was asked for as JSON."""


def _resource_group_id(vm: About) -> str:
    profile = vm.binding.profile
    return f"/subscriptions/{profile.subscription_id}/resourceGroups/{profile.resource_group}"


def _scale_set_id(vm: About) -> str:
    provider = f"{_resource_group_id(vm)}/providers/Microsoft.Compute"
    return f"{provider}/virtualMachineScaleSets/{vm.binding.profile.scale_set}"


def resource_id(vm: About) -> str:
    profile = vm.binding.profile
    if profile.scale_set and not profile.is_flexible:
        # Uniform instances are numbered, and named after set and number.
        return f"{_scale_set_id(vm)}/virtualMachines/{vm.binding.name.rpartition('_')[2]}"
    provider = f"{_resource_group_id(vm)}/providers/Microsoft.Compute"
    if service := cloud_service(vm.binding):
        return f"{provider}/cloudServices/{service}/roleInstances/{vm.binding.name}"
    return f"{provider}/virtualMachines/{vm.binding.name}"


def _flexible_set(vm: About) -> Node:
    profile = vm.binding.profile
    return {"id": _scale_set_id(vm) if profile.scale_set and profile.is_flexible else ""}


def _tags(vm: About) -> str:
    return ";".join(f"{name}:{value}" for name, value in vm.binding.profile.tags.items())


def _tags_list(vm: About) -> Node:
    return [{"name": name, "value": value} for name, value in vm.binding.profile.tags.items()]


def _eviction_policy(vm: About) -> str:
    is_spot = vm.resource.priority is Priority.SPOT
    return vm.resource.eviction_policy.value if is_spot else ""


def _empty(_: About) -> str:
    return ""


# By name, as Azure sorts them: the version that introduced the field, and its value.
_COMPUTE: Final[Mapping[str, tuple[str, Field]]] = {
    "azEnvironment": ("2018-10-01", lambda _: "AzurePublicCloud"),
    "customData": ("2019-02-01", _empty),
    "evictionPolicy": ("2020-12-01", _eviction_policy),
    "licenseType": ("2020-09-01", _empty),
    "location": ("2017-04-02", lambda vm: vm.binding.profile.location),
    "name": ("2017-04-02", lambda vm: vm.binding.name),
    "offer": ("2017-04-02", lambda vm: vm.equipment.image.offer),
    "osProfile": ("2020-07-15", lambda vm: {"computerName": vm.binding.profile.computer_name}),
    "osType": ("2017-04-02", lambda vm: vm.binding.profile.os_type),
    "placementGroupId": ("2017-08-01", lambda vm: vm.binding.profile.placement_group_id),
    "platformFaultDomain": ("2017-04-02", lambda vm: str(vm.resource.fault_domain)),
    "platformUpdateDomain": ("2017-04-02", lambda vm: str(vm.resource.update_domain)),
    "priority": ("2020-12-01", lambda vm: vm.resource.priority.value),
    "provider": ("2018-10-01", lambda _: "Microsoft.Compute"),
    "publisher": ("2017-04-02", lambda vm: vm.equipment.image.publisher),
    "resourceGroupName": ("2017-08-01", lambda vm: vm.binding.profile.resource_group),
    "resourceId": ("2019-03-11", resource_id),
    "sku": ("2017-04-02", lambda vm: vm.equipment.image.sku),
    "subscriptionId": ("2017-08-01", lambda vm: vm.binding.profile.subscription_id),
    "tags": ("2017-08-01", _tags),
    "tagsList": ("2019-06-04", _tags_list),
    "userData": ("2021-01-01", _empty),
    "version": ("2017-04-02", lambda vm: vm.equipment.image.version),
    "virtualMachineScaleSet": ("2021-03-01", _flexible_set),
    "vmId": ("2017-04-02", lambda vm: vm.binding.profile.vm_id),
    "vmScaleSetName": ("2017-12-01", lambda vm: vm.binding.profile.scale_set),
    "vmSize": ("2017-04-02", lambda vm: vm.binding.profile.size),
    "zone": ("2017-12-01", lambda vm: vm.binding.profile.zone),
}


def document(vm: About, version: str) -> Node:
    # Versions are dates, so they compare as text.
    return {
        "compute": {
            name: value(vm) for name, (since, value) in _COMPUTE.items() if since <= version
        },
        "network": {"interface": [_interface(each) for each in vm.equipment.interfaces]},
    }


def _interface(interface: Interface) -> Node:
    private = interface.private_address
    address: Node = {"privateIpAddress": private, "publicIpAddress": interface.public_address}
    is_ipv6 = ":" in private
    v4: list[Node] = [] if is_ipv6 else [address]
    v6: list[Node] = [{"privateIpAddress": private}] if is_ipv6 else []
    return {
        "ipv4": {"ipAddress": v4, "subnet": []},
        "ipv6": {"ipAddress": v6},
        "macAddress": interface.mac_address,
    }


def answer(vm: About, operation: ReadInstance) -> bytes:
    """The part that was asked for, as it was asked for.

    Raises NoSuchElementError, LeafFormatError.
    """
    node = document(vm, operation.version)
    for step in operation.path:
        node = _child(node, step)
    if operation.format is Format.TEXT:
        return _text(node).encode()
    if isinstance(node, str):
        raise LeafFormatError
    return msgspec.json.encode(node)


def _child(node: Node, step: str) -> Node:
    match node:
        case dict():
            # Paths compare without case; names of fields differ by more than that.
            for name, value in node.items():
                if name.lower() == step:
                    return value
        case list():
            # By their text: a number of thousands of digits is more than `int` reads.
            for index, value in enumerate(node):
                if str(index) == step:
                    return value
        case str():
            pass
    raise NoSuchElementError


def _text(node: Node) -> str:
    match node:
        case str():
            return node
        case list():
            return "\n".join(f"{index}{_slash(value)}" for index, value in enumerate(node))
        case dict():
            return "\n".join(f"{name}{_slash(value)}" for name, value in node.items())


def _slash(node: Node) -> str:
    """Whether there is more below, as in the listing of a directory."""
    return "" if isinstance(node, str) else "/"


VERSIONS: Final = msgspec.json.encode({"apiVersions": METADATA_VERSIONS})
