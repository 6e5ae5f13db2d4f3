"""A fleet as an operator declares it. `plan.Expansion` turns it into scopes and bindings."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from forewarned.core.model import EvictionPolicy, Policy, Priority

# Fault domains: Azure's default for availability sets and cloud services is 2. Its scale sets have
# up to 5, but most regions give 3. Update domains are 5 everywhere.
UPDATE_DOMAINS: Final = 5
FAULT_DOMAINS: Final = 2
SCALE_SET_FAULT_DOMAINS: Final = 3
PLACEMENT_GROUP_SIZE: Final = 100
NO_SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMachine:
    """A stand-alone VM: a scope of its own."""

    name: str
    address: str | None = None
    """None takes the next free one."""
    host: str | None = None
    """None takes one that suits."""
    zone: str = ""
    model: Model = Model()
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A VM of an availability set."""

    name: str
    address: str | None = None
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
class Role:
    """The instances of a cloud service that do the same work."""

    name: str
    instances: int
    addresses: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    model: Model = Model()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudService:
    name: str
    roles: tuple[Role, ...] = ()
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = FAULT_DOMAINS
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    location: str = "local"
    resource_group: str = "local"
    subscription_id: str = NO_SUBSCRIPTION
    address_range: Network | None = None
    """Where VMs without an address get one; None takes the server's own range."""
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

    def declared_addresses(self) -> Iterator[str]:
        """As written, and perhaps wrong."""
        yield from (vm.address for vm in self._singles() if vm.address is not None)
        for many in self._numbered():
            yield from many.addresses

    def declared_hosts(self) -> Iterator[str]:
        yield from (vm.host for vm in self._singles() if vm.host is not None)
        for many in self._numbered():
            yield from many.hosts

    def _singles(self) -> Iterator[VirtualMachine | Member]:
        yield from self.vms
        for each in self.availability_sets:
            yield from each.members

    def _numbered(self) -> Iterator[ScaleSet | Role]:
        yield from self.scale_sets
        for each in self.cloud_services:
            yield from each.roles
