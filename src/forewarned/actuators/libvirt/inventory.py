"""The VMs that libvirts have.

Invariant: addresses come from what operators have configured, in domains and networks. Guests can
write leases, neighbour tables and what their agents say, so nothing is taken from those.
"""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import libvirt

from forewarned.actuators.driver import DriverError, Power
from forewarned.actuators.libvirt.connections.event_thread import event_thread
from forewarned.actuators.libvirt.connections.hosts import Host
from forewarned.actuators.libvirt.definition import Definition, Interface, parse_definition
from forewarned.actuators.libvirt.instances import power_of
from forewarned.service.sources.listing import ListedVm, Listing

Assigned = Mapping[str, Mapping[str, str]]
"""The address that each network gives to each MAC address."""
List = Callable[[libvirt.virConnect], list[tuple[Power, ListedVm]]]
"""Lists one libvirt."""


async def list_vms(uris: Iterable[str]) -> Listing:
    """Those of several libvirts, on the hosts that these say they are."""
    with event_thread():
        hosts = [Host(uri, uri) for uri in uris]
        listing = await _list_all(hosts, _list_as_it_says)
        for host in hosts:
            await host.close()
    return listing


async def list_hosts(hosts: Sequence[Host]) -> Listing:
    """Those of several hosts, by the names that the settings have for these."""

    def list_as(host: Host) -> List:
        return lambda connection: _list_now(connection, host.name)

    return await _list_all(hosts, list_as)


async def _list_all(hosts: Sequence[Host], how: Callable[[Host], List]) -> Listing:
    answers = await asyncio.gather(*(_listed(host, how(host)) for host in hosts))
    found = [pair for answer in answers if isinstance(answer, list) for pair in answer]
    silent = {
        host.name: answer
        for host, answer in zip(hosts, answers, strict=True)
        if isinstance(answer, str)
    }
    return Listing(vms=_once(found), silent=silent)


async def _listed(host: Host, how: List) -> list[tuple[Power, ListedVm]] | str:
    """Or why it can't say."""
    try:
        return await host.call(how)
    except DriverError as error:
        return str(error)


def _list_as_it_says(_: Host) -> List:
    return lambda connection: _list_now(connection, connection.getHostname())


def _list_now(connection: libvirt.virConnect, name: str) -> list[tuple[Power, ListedVm]]:
    assigned = {
        network.name(): assigned_addresses(network.XMLDesc())
        for network in connection.listAllNetworks()
    }
    return [
        (power_of(domain), listed_vm(parse_definition(domain.XMLDesc()), name, assigned))
        for domain in connection.listAllDomains()
    ]


def _once(found: Iterable[tuple[Power, ListedVm]]) -> tuple[ListedVm, ...]:
    """Two hosts have a VM that is being migrated: it is where it runs."""
    chosen: dict[str, ListedVm] = {}
    for power, vm in found:
        if vm.vm_id not in chosen or power is Power.RUNNING:
            chosen[vm.vm_id] = vm
    return tuple(sorted(chosen.values(), key=lambda vm: (vm.host, vm.name)))


def listed_vm(definition: Definition, host: str, assigned: Assigned) -> ListedVm:
    """Known by the address of its first interface that has one, unless the operator says which."""
    choices = [
        (address, interface)
        for interface in definition.interfaces
        for address in _addresses(interface, assigned)
        if definition.address in {"", address}
    ]
    address, interface = choices[0] if choices else (definition.address, None)
    if interface is None and len(definition.interfaces) == 1:
        (interface,) = definition.interfaces
    return ListedVm(
        vm_id=definition.uuid,
        name=definition.name,
        host=host,
        address=address,
        interface="" if interface is None else interface.device,
        port_mark=definition.port_mark,
        availability_set=definition.availability_set,
        zone=definition.zone,
    )


def _addresses(interface: Interface, assigned: Assigned) -> Iterator[str]:
    yield from interface.addresses
    if given := assigned.get(interface.network, {}).get(interface.mac):
        yield given


def assigned_addresses(network: str) -> dict[str, str]:
    """What a network's DHCP server gives to which MAC address, as its definition says."""
    # libvirt wrote it itself, and writes no entities.
    hosts = ET.fromstring(network).findall("ip/dhcp/host")  # noqa: S314
    return {host.get("mac", "").lower(): host.get("ip", "") for host in hosts if host.get("mac")}
