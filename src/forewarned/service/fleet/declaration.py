"""A fleet as an operator declares it. `plan.Expansion` turns it into scopes and bindings."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from forewarned.core.ids import same_name
from forewarned.core.model import EvictionPolicy, Policy, Priority
from forewarned.service.fleet.addresses import plain_address, port_address

# Fault domains: Azure's default for availability sets and cloud services is 2. Its scale sets have
# up to 5, but most regions give 3. Update domains are 5 everywhere.
UPDATE_DOMAINS: Final = 5
FAULT_DOMAINS: Final = 2
SCALE_SET_FAULT_DOMAINS: Final = 3
PLACEMENT_GROUP_SIZE: Final = 100
NO_SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"


MOST_PORT_MARK: Final = 2**31 - 1
"""Marks have 32 bits, but the kernel reports those of sockets with a sign."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def binding_address(address: str | None, port_mark: int | None) -> str | None:
    """What a VM is known by if this is declared for it; None if nothing is. Raises ValueError.

    Invariant: a VM that has a port mark is known by that alone. Its address proves nothing.
    """
    if port_mark is not None:
        return port_address(port_mark)
    return None if address is None else plain_address(address)


class Orchestration(StrEnum):
    UNIFORM = "Uniform"
    FLEXIBLE = "Flexible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What the VMs of one declaration have in common."""

    size: str = "Standard_D2s_v5"
    os_type: str = "Linux"
    priority: Priority = Priority.REGULAR
    eviction_policy: EvictionPolicy = EvictionPolicy.DEALLOCATE
    terminate_notice: timedelta | None = None
    """None where terminate notifications are off."""
    image_notice: timedelta | None = None
    """None if VMs get no notice of a new OS image."""
    tags: Mapping[str, str] = field(default_factory=dict)
    actuator: str = ""
    """What carries out their events, by name; empty where the plan or the settings say that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMachine:
    """A stand-alone VM: a scope of its own."""

    name: str
    vm_id: str | None = None
    """The UUID that the VM has on its platform; None makes one up."""
    address: str | None = None
    """None takes the next free one, or none at all if the VM has a port mark."""
    port_mark: int | None = None
    """What its hypervisor marks with all that comes from its port; None if it doesn't."""
    interface: str = ""
    """That port, by the name that its host's kernel has for it; empty if no one has said."""
    host: str | None = None
    """None takes one that suits."""
    zone: str = ""
    model: Model = Model()
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A VM of an availability set."""

    name: str
    vm_id: str | None = None
    address: str | None = None
    port_mark: int | None = None
    interface: str = ""
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilitySet:
    name: str
    members: tuple[Member, ...] = ()
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = FAULT_DOMAINS
    model: Model = Model()
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSet:
    name: str
    capacity: int
    orchestration: Orchestration = Orchestration.UNIFORM
    zones: tuple[str, ...] = ()
    """Zones its instances take turns in; empty for a regional set."""
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = SCALE_SET_FAULT_DOMAINS
    single_placement_group: bool = False
    computer_name_prefix: str = ""
    """Empty takes the set's name."""
    addresses: tuple[str, ...] = ()
    """Of the first instances, in their order; the others take the next free ones."""
    hosts: tuple[str, ...] = ()
    """Of the first instances, in their order."""
    model: Model = Model()
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudServiceRole:
    """The instances of a cloud service that do the same work."""

    name: str
    instances: int
    addresses: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    model: Model = Model()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudService:
    name: str
    roles: tuple[CloudServiceRole, ...] = ()
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = FAULT_DOMAINS
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredHost:
    name: str
    actuator: str = ""
    """Of the VMs there, unless their own declaration names one; empty as for other hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    location: str = "local"
    resource_group: str = "local"
    subscription_id: str = NO_SUBSCRIPTION
    address_range: Network | None = None
    """Where VMs without an address get one; None takes the server's own range."""
    actuator: str = ""
    """Of VMs whose declaration names none, and that of their host neither."""
    hosts: tuple[DeclaredHost, ...] = ()
    """Those of which there is something to say."""
    vms: tuple[VirtualMachine, ...] = ()
    availability_sets: tuple[AvailabilitySet, ...] = ()
    scale_sets: tuple[ScaleSet, ...] = ()
    cloud_services: tuple[CloudService, ...] = ()

    def size(self) -> int:
        """How many VMs it declares, without making them."""
        return (
            len(self.vms)
            + sum(len(each.members) for each in self.availability_sets)
            + sum(max(0, each.capacity) for each in self.scale_sets)
            + sum(max(0, role.instances) for each in self.cloud_services for role in each.roles)
        )

    def actuator_on(self, host: str) -> str:
        """Of VMs there whose own declaration names none."""
        for each in self.hosts:
            if each.actuator and same_name(each.name, host):
                return each.actuator
        return self.actuator

    def declared_addresses(self) -> Iterator[str]:
        """What VMs will be known by, as far as the plan says. To be asked of a sound plan only."""
        for vm in self._singles():
            if (known_by := binding_address(vm.address, vm.port_mark)) is not None:
                yield known_by
        for many in self._numbered():
            yield from map(plain_address, many.addresses)

    def declared_hosts(self) -> Iterator[str]:
        yield from (vm.host for vm in self._singles() if vm.host is not None)
        for many in self._numbered():
            yield from many.hosts

    def _singles(self) -> Iterator[VirtualMachine | Member]:
        yield from self.vms
        for each in self.availability_sets:
            yield from each.members

    def _numbered(self) -> Iterator[ScaleSet | CloudServiceRole]:
        yield from self.scale_sets
        for each in self.cloud_services:
            yield from each.roles
