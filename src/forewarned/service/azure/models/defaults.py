"""Defaults for what a model does not declare: its disk, its image, its user, its network.

Azure's answers have all of it, and clients count on that: `az vm update` gets a model, changes a
part and puts the whole, and stops where a disk has no `createOption`.

Invariant: a completed model is complete, so completing it again changes nothing; what was declared
is never replaced.
"""

from collections.abc import Mapping
from typing import Any, Final

from forewarned.service.azure.models.documents import Json, at, put_at, without
from forewarned.service.azure.resource_ids import NETWORK_INTERFACES, ResourceId, same

LATEST_VERSION: Final = "1.0.0"
"""The one version that each marketplace image has here."""

_FROM_IMAGE: Final = "FromImage"
_IMAGES: Final[Mapping[str, Json]] = {
    "Linux": {
        "publisher": "Canonical",
        "offer": "ubuntu-24_04-lts",
        "sku": "server",
        "version": "latest",
    },
    "Windows": {
        "publisher": "MicrosoftWindowsServer",
        "offer": "WindowsServer",
        "sku": "2022-datacenter-g2",
        "version": "latest",
    },
}
_SYSTEMS: Final[Mapping[str, tuple[str, Json]]] = {
    "Linux": (
        "linuxConfiguration",
        {"disablePasswordAuthentication": True, "provisionVMAgent": True},
    ),
    "Windows": (
        "windowsConfiguration",
        {"enableAutomaticUpdates": True, "provisionVMAgent": True},
    ),
}
_USER: Final = "azureuser"
# The version of Microsoft.Network in which a Flexible set makes the interfaces of its VMs.
_NETWORK_VERSION: Final = "2020-11-01"


def complete_vm(document: Json, id_: ResourceId, *, os_type: str) -> None:
    """Of a VM that is a resource of its own."""
    properties = _object(document, "properties")
    _complete_storage(properties, os_type)
    if _is_from_image(properties):
        _usual(properties, "storageProfile.osDisk.name", f"{id_.name}_OsDisk_1")
        _usual(properties, "storageProfile.osDisk.deleteOption", "Detach")
        _complete_system(properties, os_type)
    network = _object(properties, "networkProfile")
    if not _names_interfaces(network):
        network["networkInterfaces"] = [
            {"id": default_interface(id_).path, "properties": {"primary": True}}
        ]
    properties["networkProfile"] = network
    document["properties"] = properties


def complete_profile(profile: Json, set_name: str, *, os_type: str, is_flexible: bool) -> None:
    """Of a scale set: its `virtualMachineProfile`."""
    _complete_storage(profile, os_type)
    if _is_from_image(profile):
        _usual(profile, "osProfile.computerNamePrefix", set_name)
        _complete_system(profile, os_type)
    _usual(profile, "networkProfile.networkInterfaceConfigurations", [_configuration(set_name)])
    if is_flexible:
        _usual(profile, "networkProfile.networkApiVersion", _NETWORK_VERSION)


def default_interface(vm: ResourceId) -> ResourceId:
    """The interface of a VM that declares none, named as `az vm create` names it."""
    return ResourceId(
        subscription=vm.subscription,
        group=vm.group,
        type=NETWORK_INTERFACES,
        name=f"{vm.name}VMNic",
    )


def hide_unknown_os(holder: Json) -> None:
    """A fleet may have operating systems that Azure does not have; `az` fails to read them."""
    kind = "storageProfile.osDisk.osType"
    system = at(holder, kind)
    if isinstance(system, str) and system.capitalize() not in _SYSTEMS:
        holder["storageProfile"] = without(holder, kind)["storageProfile"]
    elif isinstance(system, str):
        put_at(holder, kind, system.capitalize())


def exact_version(image: Mapping[str, Any]) -> str:
    """Of an image reference; empty if it is not a marketplace image."""
    version = image.get("version")
    if not isinstance(version, str) or not image.get("publisher"):
        return ""
    return LATEST_VERSION if same(version, "latest") else version


def _complete_storage(holder: Json, os_type: str) -> None:
    disk = "storageProfile.osDisk"
    _usual(holder, f"{disk}.osType", os_type)
    _usual(holder, f"{disk}.createOption", _FROM_IMAGE)
    _usual(holder, f"{disk}.caching", "ReadWrite")
    # A disk that is a file in a storage account is not a managed disk.
    if not any(at(holder, f"{disk}.{each}") for each in ("vhd", "image", "vhdContainers")):
        _usual(holder, f"{disk}.managedDisk.storageAccountType", "Premium_LRS")
        if _is_from_image(holder):
            image = _IMAGES.get(os_type.capitalize(), _IMAGES["Linux"])
            _usual(holder, "storageProfile.imageReference", dict(image))
    _usual(holder, "storageProfile.dataDisks", [])


def _complete_system(holder: Json, os_type: str) -> None:
    _usual(holder, "osProfile.adminUsername", _USER)
    _usual(holder, "osProfile.allowExtensionOperations", True)
    if not any(at(holder, f"osProfile.{name}") for name, _ in _SYSTEMS.values()):
        name, usual = _SYSTEMS.get(os_type.capitalize(), _SYSTEMS["Linux"])
        _usual(holder, f"osProfile.{name}", dict(usual))


def _names_interfaces(network: Json) -> bool:
    listed = network.get("networkInterfaces")
    return isinstance(listed, list) and any(isinstance(at(each, "id"), str) for each in listed)


def _is_from_image(holder: Json) -> bool:
    """Whether the disk is made from an image; otherwise an existing disk is attached."""
    made = at(holder, "storageProfile.osDisk.createOption")
    return isinstance(made, str) and same(made, _FROM_IMAGE)


def _configuration(set_name: str) -> Json:
    address = {"name": f"{set_name}IPConfig", "properties": {"privateIPAddressVersion": "IPv4"}}
    return {
        "name": f"{set_name}Nic",
        "properties": {"primary": True, "ipConfigurations": [address]},
    }


def _usual(document: Json, path: str, value: object) -> None:
    if at(document, path) is None:
        put_at(document, path, value)


def _object(document: Json, name: str) -> Json:
    """A copy of it; empty if there is none."""
    value = document.get(name)
    return dict(value) if isinstance(value, dict) else {}
