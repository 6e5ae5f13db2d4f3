"""The network interfaces of VMs: those that a VM was declared with, or the one that every VM has.

No packet depends on them. The first interface of a VM has the VM's own address; all others have
addresses that follow from their names, so that they stay the same.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from forewarned.service.azure import inventory
from forewarned.service.azure.equipment import Equipment, Image, Interface, mac_address
from forewarned.service.azure.groups import declared
from forewarned.service.azure.inventory import VmView
from forewarned.service.azure.models.defaults import (
    complete_profile,
    exact_version,
)
from forewarned.service.azure.models.documents import (
    Json,
    at,
    decoded,
    object_in,
    objects_in,
)
from forewarned.service.azure.models.virtual_machine import document_of, profile_of
from forewarned.service.azure.resource_ids import (
    MACHINES,
    PUBLIC_ADDRESSES,
    InvalidResourceIdError,
    ResourceId,
    same,
)
from forewarned.service.ports import Snapshot

_DEFAULT_SUFFIX: Final = "VMNic"
_OF_MACHINES: Final = f"/providers/{MACHINES}/".casefold()


class Attachment(NamedTuple):
    """An interface as part of a VM: the primary one is number 0."""

    vm: VmView
    number: int
    path: str
    """Of the interface."""


# --- what VMs have -------------------------------------------------------------------------------


def equipment_of(snapshot: Snapshot, vm: VmView) -> Equipment:
    """A VM's own metadata: the same image and interfaces that clients read."""
    if vm.is_role:
        address = vm.binding.private_address
        mac = mac_address(address, vm.profile.vm_id)
        return Equipment(interfaces=(Interface(mac_address=mac, private_address=address),))
    if vm.is_instance:
        set_name, os_type = vm.profile.scale_set, vm.profile.os_type
        parts: Json = dict(profile_of(snapshot, vm))
        complete_profile(parts, set_name, os_type=os_type, is_flexible=False)
        return Equipment(image=_image(parts), interfaces=_instance_interfaces(vm, parts))
    document = document_of(snapshot, vm)
    paths = interface_paths(document)
    return Equipment(
        image=_image(document["properties"]),
        interfaces=tuple(
            interface(snapshot, Attachment(vm, number, path), _configurations(snapshot, path))
            for number, path in enumerate(paths)
        ),
    )


def interface(snapshot: Snapshot, attached: Attachment, configurations: list[Json]) -> Interface:
    """`configurations` are the interface's IP configurations, as they are declared."""
    binding, number = attached.vm.binding, attached.number
    first = configurations[0] if configurations else {}
    further = _word(at(first, "properties.privateIPAddress")) or private_address(attached.path)
    return Interface(
        mac_address=mac_address(binding.private_address, binding.profile.vm_id, number),
        private_address=further if number else binding.private_address,
        public_address=_public_address_of(snapshot, first),
    )


def interface_configurations(network: Mapping[str, Any]) -> list[Json]:
    """Those of a set's network profile that have a name, the primary one first."""
    declared = objects_in(network, "networkInterfaceConfigurations")
    named = [each for each in declared if isinstance(each.get("name"), str)]
    return sorted(named, key=lambda each: not _is_primary(each))


def _is_primary(configuration: Json) -> bool:
    properties = object_in(configuration, "properties")
    return any(same(name, "primary") and value is True for name, value in properties.items())


def instance_public_path(interface: str, configuration: Json) -> str | None:
    """Of an IP configuration in a set's model; None where it gives instances no public address.

    `interface` is the path of the instance's interface.
    """
    properties = object_in(configuration, "properties")
    public = object_in(properties, "publicIPAddressConfiguration")
    path = f"{interface}/ipConfigurations/{configuration.get('name')}"
    return f"{path}/publicIPAddresses/{public.get('name')}" if public else None


def _instance_interfaces(vm: VmView, parts: Json) -> tuple[Interface, ...]:
    """One for each that the set's model has; `parts` is the model's profile."""
    binding = vm.binding
    profile = binding.profile
    instance = f"{inventory.scale_set_id(profile).path}/virtualMachines/{vm.instance_id}"
    found = []
    network = object_in(parts, "networkProfile")
    # Every VM has one, whatever its set was declared with.
    for number, each in enumerate(interface_configurations(network) or [{}]):
        configurations = objects_in(object_in(each, "properties"), "ipConfigurations")
        path = f"{instance}/networkInterfaces/{each.get('name')}"
        public = instance_public_path(path, configurations[0]) if configurations else None
        found.append(
            Interface(
                mac_address=mac_address(binding.private_address, profile.vm_id, number),
                private_address="" if number else binding.private_address,
                public_address="" if public is None else public_address(public),
            )
        )
    return tuple(found)


def _image(parts: Json) -> Image:
    reference = at(parts, "storageProfile.imageReference")
    if not isinstance(reference, dict):
        return Image()
    words = {name: _word(reference.get(name)) for name in ("publisher", "offer", "sku")}
    return Image(**words, version=exact_version(reference))


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


# --- which VM an interface is part of ------------------------------------------------------------


class Attachments:
    """The VMs that interfaces are part of, as of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[str, Attachment] | None = None

    def of(self, id_: ResourceId) -> Attachment | None:
        # Most are named after their VM, and looking through all VMs takes time.
        return self._by_name(id_) or self._all().get(id_.path.casefold())

    def _by_name(self, id_: ResourceId) -> Attachment | None:
        name = id_.name
        if not same(name[-len(_DEFAULT_SUFFIX) :], _DEFAULT_SUFFIX):
            return None
        named = replace(id_, type=MACHINES, name=name[: -len(_DEFAULT_SUFFIX)])
        vm = inventory.virtual_machine(self._snapshot, named)
        if vm is None:
            return None
        paths = interface_paths(document_of(self._snapshot, vm))
        for number, path in enumerate(paths):
            if same(path, id_.path):
                return Attachment(vm, number, path)
        return None

    def _all(self) -> dict[str, Attachment]:
        """By their paths, in folded letters: those that VMs were declared with."""
        if self._known is None:
            self._known = {}
            for id_, paths in declared_paths(self._snapshot):
                vm = inventory.virtual_machine(self._snapshot, id_)
                if vm is not None:
                    for number, path in enumerate(paths):
                        attached = Attachment(vm, number, path)
                        self._known.setdefault(path.casefold(), attached)
        return self._known


def declared_paths(snapshot: Snapshot) -> Iterator[tuple[ResourceId, list[str]]]:
    """VMs with a declaration, and the interfaces that each declares."""
    for declaration in snapshot.declarations("/subscriptions/"):
        if declaration.document and _OF_MACHINES in declaration.path.casefold():
            yield ResourceId.parse(declaration.path), interface_paths(decoded(declaration))


def interface_paths(document: Json) -> list[str]:
    """Of a VM's document, the primary one first."""
    listed = at(document, "properties.networkProfile.networkInterfaces")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    found.sort(key=lambda each: at(each, "properties.primary") is not True)
    return [each["id"] for each in found if isinstance(each.get("id"), str)]


# --- addresses -----------------------------------------------------------------------------------


def public_address(path: str) -> str:
    """An address of a network that is reserved for examples, so no packet goes there."""
    return f"192.0.2.{_number_of(path, 1, 254)}"


def private_address(path: str, number: int = 0) -> str:
    """Of an interface that is not a VM's first, by the number of its IP configuration."""
    return f"10.0.0.{_number_of(path, 4 + number, 250)}"


def _number_of(path: str, first: int, last: int) -> int:
    """The same one for the same name, from a range."""
    digest = hashlib.sha256(path.casefold().encode()).digest()
    return first + int.from_bytes(digest[:4]) % (last - first + 1)


def _public_address_of(snapshot: Snapshot, configuration: Json) -> str:
    """Of an IP configuration; empty if it has none, or names one that does not exist."""
    id_ = _parsed(at(configuration, "properties.publicIPAddress.id"))
    if id_ is None or not same(id_.type, PUBLIC_ADDRESSES) or declared(snapshot, id_) is None:
        return ""
    return public_address(id_.path)


def _configurations(snapshot: Snapshot, path: str) -> list[Json]:
    id_ = _parsed(path)
    declaration = None if id_ is None else declared(snapshot, id_)
    listed = at(decoded(declaration), "properties.ipConfigurations")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _parsed(path: object) -> ResourceId | None:
    if not isinstance(path, str):
        return None
    try:
        return ResourceId.parse(path)
    except InvalidResourceIdError:
        return None
