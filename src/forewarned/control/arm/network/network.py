"""The little of Microsoft.Network that clients look up when they create VMs."""

from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from forewarned.control.arm.resources.declared import Kind, Look
from forewarned.control.arm.resources.declared_operations import operations_on
from forewarned.control.arm.routes import Operation
from forewarned.service.azure import inventory
from forewarned.service.azure.equipment import dashed
from forewarned.service.azure.models.defaults import default_interface
from forewarned.service.azure.models.documents import Json, encoded
from forewarned.service.azure.models.interfaces import (
    Attachments,
    declared_paths,
    interface,
    private_address,
    public_address,
)
from forewarned.service.azure.resource_ids import (
    NETWORK_INTERFACES,
    PUBLIC_ADDRESSES,
    ResourceId,
    same,
)
from forewarned.service.ports import Snapshot
from forewarned.service.records import Declaration


class _Interfaces(Kind):
    """Interfaces know the VM that has them, and a VM that was declared with none has one."""

    @override
    def looking(self, snapshot: Snapshot) -> Look:
        """They have a MAC address for as long as a VM has them."""
        attachments = Attachments(snapshot)

        def look(document: Json, id_: ResourceId) -> None:
            properties = document["properties"]
            configurations = properties["ipConfigurations"]
            for at, each in enumerate(configurations):
                inner = each["properties"]
                inner.setdefault("privateIPAllocationMethod", "Dynamic")
                inner.setdefault("privateIPAddressVersion", "IPv4")
                inner.setdefault("privateIPAddress", private_address(id_.path, at))
                inner["primary"] = at == 0
            attached = attachments.of(id_)
            if attached is None:
                return
            shown = interface(snapshot, attached, configurations)
            properties["virtualMachine"] = {"id": inventory.resource_id(attached.vm).path}
            properties["macAddress"] = dashed(shown.mac_address)
            properties["primary"] = attached.number == 0
            for each in configurations[:1]:
                each["properties"]["privateIPAddress"] = shown.private_address

        return look

    @override
    def implied(self, snapshot: Snapshot, id_: ResourceId) -> Declaration | None:
        attached = Attachments(snapshot).of(id_)
        if attached is None:
            return None
        vm = attached.vm
        usual = default_interface(inventory.resource_id(vm))
        if not same(usual.path, id_.path):
            return None
        document = {
            "location": vm.profile.location,
            "tags": {},
            "properties": {"ipConfigurations": [{"name": f"ipconfig{vm.name}"[:80]}]},
        }
        return Declaration(path=usual.path, document=encoded(document), created_at=snapshot.now)

    @override
    def implied_paths(
        self, snapshot: Snapshot, subscription: str, group: str | None
    ) -> Iterator[str]:
        own = {id_.path.casefold(): paths for id_, paths in declared_paths(snapshot)}
        for binding in inventory.own_bindings(snapshot, subscription, group):
            vm = inventory.resource_id(binding)
            usual = default_interface(vm).path
            paths = own.get(vm.path.casefold())
            if not paths or any(same(path, usual) for path in paths):
                yield usual


class _Addresses(Kind):
    @override
    def looking(self, _: Snapshot) -> Look:
        def look(document: Json, id_: ResourceId) -> None:
            properties = document["properties"]
            properties.setdefault("publicIPAllocationMethod", "Static")
            properties.setdefault("publicIPAddressVersion", "IPv4")
            properties["ipAddress"] = public_address(id_.path)

        return look


KINDS: Final = (
    Kind(type="Microsoft.Network/virtualNetworks", parts=("subnets",)),
    _Interfaces(type=NETWORK_INTERFACES, parts=("ipConfigurations",)),
    _Addresses(type=PUBLIC_ADDRESSES),
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
