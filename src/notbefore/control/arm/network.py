"""The little of Microsoft.Network that clients look up when they create VMs.

No packet depends on it. Addresses are the VMs' own where there is a VM, and otherwise follow from
the name, so that they stay the same.
"""

import hashlib
from typing import Any, Final

import msgspec

from notbefore.control.arm.keeping import operations_on
from notbefore.control.arm.kept import Kind, Look
from notbefore.control.arm.requests import Json
from notbefore.control.arm.routing import Operation
from notbefore.service import inventory
from notbefore.service.inventory import Machine
from notbefore.service.ports import Snapshot
from notbefore.service.resource_ids import MACHINES, ResourceId


def _looking_at_interfaces(snapshot: Snapshot) -> Look:
    """Interfaces know the VM that has them."""
    owners = _owners(snapshot)

    def look(document: Json, id_: ResourceId) -> None:
        properties = document["properties"]
        owner = owners.get(id_.path.casefold())
        properties["macAddress"] = mac_of(id_.path)
        if owner is not None:
            properties["virtualMachine"] = {"id": inventory.resource_id(owner).path}
        for at, each in enumerate(properties["ipConfigurations"]):
            inner = each["properties"]
            inner.setdefault("privateIPAllocationMethod", "Dynamic")
            inner.setdefault("privateIPAddressVersion", "IPv4")
            inner["primary"] = at == 0
            if owner is not None and at == 0:
                inner["privateIPAddress"] = owner.binding.address
            else:
                number = _number(id_.path, 4 + at, 250)
                inner.setdefault("privateIPAddress", f"10.0.0.{number}")

    return look


def _looking_at_addresses(_: Snapshot) -> Look:
    def look(document: Json, id_: ResourceId) -> None:
        properties = document["properties"]
        properties.setdefault("publicIPAllocationMethod", "Static")
        properties.setdefault("publicIPAddressVersion", "IPv4")
        properties["ipAddress"] = public_address_of(id_.path)

    return look


def _owners(snapshot: Snapshot) -> dict[str, Machine]:
    """VMs by the paths, in folded letters, of the interfaces they were declared with."""
    owners: dict[str, Machine] = {}
    for declaration in snapshot.declarations("/subscriptions/"):
        if f"/providers/{MACHINES}/".casefold() not in declaration.path.casefold():
            continue
        machine = inventory.virtual_machine(snapshot, ResourceId.parse(declaration.path))
        if machine is not None and declaration.document:
            for path in _interfaces(msgspec.json.decode(declaration.document)):
                owners.setdefault(path.casefold(), machine)
    return owners


def _interfaces(document: dict[str, Any]) -> list[str]:
    profile = (document.get("properties") or {}).get("networkProfile")
    listed = profile.get("networkInterfaces") if isinstance(profile, dict) else None
    if not isinstance(listed, list):
        return []
    found = (each.get("id") for each in listed if isinstance(each, dict))
    return [path for path in found if isinstance(path, str)]


def mac_of(path: str) -> str:
    """Of the interface at this path."""
    return "00-0D-3A-" + "-".join(f"{byte:02X}" for byte in _digest(path)[:3])


def public_address_of(path: str) -> str:
    """In a network that is set aside for examples: it leads nowhere."""
    return f"192.0.2.{_number(path, 1, 254)}"


def _number(path: str, first: int, last: int) -> int:
    return first + int.from_bytes(_digest(path)[:4]) % (last - first + 1)


def _digest(path: str) -> bytes:
    return hashlib.sha256(path.casefold().encode()).digest()


KINDS: Final = (
    Kind(type="Microsoft.Network/virtualNetworks", parts=("subnets",)),
    Kind(
        type="Microsoft.Network/networkInterfaces",
        parts=("ipConfigurations",),
        looking=_looking_at_interfaces,
    ),
    Kind(type="Microsoft.Network/publicIPAddresses", looking=_looking_at_addresses),
    Kind(type="Microsoft.Network/networkSecurityGroups", parts=("securityRules",)),
    Kind(
        type="Microsoft.Network/loadBalancers",
        parts=(
            "frontendIPConfigurations",
            "backendAddressPools",
            "inboundNatRules",
            "inboundNatPools",
            "loadBalancingRules",
            "probes",
        ),
    ),
)

OPERATIONS: Final[tuple[Operation, ...]] = tuple(
    operation for kind in KINDS for operation in operations_on(kind)
)
