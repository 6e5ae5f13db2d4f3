"""The VMs that an OpenStack cloud has.

Invariant: addresses are those that Neutron has given to a VM's ports, which it keeps guests from
changing, and never what a guest says.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from forewarned.actuators.driver import Power
from forewarned.actuators.openstack.compute import Compute
from forewarned.actuators.openstack.session import Cloud, Session
from forewarned.actuators.openstack.sightings import power
from forewarned.actuators.openstack.wire import Server, ServerGroup
from forewarned.service.sources.listing import ListedVm, Listing

_APART: Final = frozenset({"anti-affinity", "soft-anti-affinity"})
"""Policies of server groups whose VMs are kept on different hosts."""


async def list_vms(cloud: Cloud) -> Listing:
    """Those of all projects. Raises DriverError: a listing of one cloud is complete or fails."""
    return await list_cloud(Compute(Session(cloud)))


async def list_cloud(compute: Compute) -> Listing:
    """As `list_vms`, by a connection that is there already."""
    return listing(await compute.servers(), await compute.server_groups())


def listing(servers: Iterable[Server], groups: Iterable[ServerGroup]) -> Listing:
    sets = {
        member: group.name for group in groups if group.policy in _APART for member in group.members
    }
    vms = [
        _listed(server, sets)
        for server in servers
        if server.host is not None and power(server) is not Power.GONE
    ]
    return Listing(vms=tuple(sorted(vms, key=lambda vm: (vm.host, vm.name))))


def _listed(server: Server, sets: Mapping[str, str]) -> ListedVm:
    fixed = [
        address.addr
        for addresses in server.addresses.values()
        for address in addresses
        # Requests to the metadata service come from the VM's own address, before any router.
        if address.kind == "fixed"
    ]
    return ListedVm(
        vm_id=server.id,
        name=server.name,
        host=server.host or "",
        address=fixed[0] if fixed else "",
        availability_set=sets.get(server.id, ""),
        zone=server.zone or "",
    )
