"""The nftables rules of a hypervisor whose bridge connects VMs to the metadata listener.

They keep three promises, for VMs whose interface the fleet knows:

- A connection carries the mark of the port it came from, whatever address it was made with.
- What the listener answers to a mark leaves by the port of that mark. Otherwise a VM that answers
  for another's address on the bridge could finish a connection which that one began.
- A VM whose address the fleet knows reaches the listener from that address only, and no VM answers
  for the listener or for the address of another VM.
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from forewarned.core.errors import Category, RefusalError, UnknownHostError
from forewarned.core.ids import HostName, ResourceName
from forewarned.service.ports import Snapshot
from forewarned.service.records import Binding

Listener = ipaddress.IPv4Address


class SharedInterfaceError(RefusalError, category=Category.CONFLICT, field="interface"):
    def __init__(self, interface: str, names: tuple[ResourceName, ResourceName]) -> None:
        super().__init__(
            f"VMs {names[0]!r} and {names[1]!r} both have the interface {interface!r}: rules that"
            " cover both need a different interface name for each VM"
        )
        self.interface = interface
        self.names = names


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    host: HostName
    rules: str
    """A file for `nft -f`."""
    left_out: tuple[ResourceName, ...]
    """VMs whose interface the fleet does not know."""


def rules_of_host(
    snapshot: Snapshot, host: HostName, *, listener: Listener, every_vm: bool
) -> HostRules:
    """With `every_vm`, for VMs of other hosts too, which may be moved to this one.

    Raises UnknownHostError, SharedInterfaceError.
    """
    bindings = list(snapshot.bindings() if every_vm else _on_host(snapshot, host))
    if not bindings:
        raise UnknownHostError(host)
    known = [vm for vm in bindings if vm.profile.interface]
    _refuse_shared_interfaces(known)
    return HostRules(
        host=host,
        rules="\n".join(_file(known, listener)) + "\n",
        left_out=tuple(vm.name for vm in bindings if not vm.profile.interface),
    )


def _on_host(snapshot: Snapshot, host: HostName) -> Iterator[Binding]:
    names = [
        vm.name
        for scope_id in snapshot.scopes_on(host)
        for vm in snapshot.load(scope_id).resources.values()
        if vm.host == host
    ]
    yield from snapshot.bindings_named(names)


def _refuse_shared_interfaces(vms: Iterable[Binding]) -> None:
    seen: dict[str, ResourceName] = {}
    for vm in vms:
        other = seen.setdefault(vm.profile.interface, vm.name)
        if other != vm.name:
            raise SharedInterfaceError(vm.profile.interface, (other, vm.name))


def _file(vms: Collection[Binding], listener: Listener) -> Iterator[str]:
    marked = [(vm.profile.interface, vm.port_mark) for vm in vms if vm.port_mark is not None]
    addressed = [
        (vm.profile.interface, vm.private_address) for vm in vms if _is_ipv4(vm.private_address)
    ]
    yield """\
# Made by `forewarned host rules`. Load it with `nft -f`, and regenerate it when VMs of this host,
# their port marks, interfaces or addresses have changed.
table bridge forewarned
delete table bridge forewarned
table bridge forewarned {"""
    yield from _named("set interfaces", "ifname", (f'"{vm.profile.interface}"' for vm in vms))
    yield from _named("map marks", "ifname : mark", (f'"{one}" : {mark}' for one, mark in marked))
    yield from _named("set ports", "mark . ifname", (f'{mark} . "{one}"' for one, mark in marked))
    yield from _named("set addressed", "ifname", (f'"{one}"' for one, _ in addressed))
    yield from _named("set addresses", "ipv4_addr", dict.fromkeys(ip for _, ip in addressed))
    own = (f'"{one}" . {ip}' for one, ip in addressed)
    yield from _named("set own_addresses", "ifname . ipv4_addr", own)
    yield f"""
    chain from_vms {{
        type filter hook prerouting priority dstnat; policy accept;
        iifname != @interfaces accept
        ip saddr {listener} counter drop
        arp saddr ip {listener} counter drop
        arp saddr ip @addresses iifname . arp saddr ip != @own_addresses counter drop
        ip daddr != {listener} accept
        iifname @addressed iifname . ip saddr != @own_addresses counter drop
        meta mark set iifname map @marks
    }}

    chain to_vms {{
        type filter hook output priority filter; policy accept;
        ip saddr {listener} meta mark != 0 meta mark . oifname != @ports counter drop
    }}
}}"""


def _named(name: str, type_: str, elements: Iterable[str]) -> Iterator[str]:
    listed = ",\n            ".join(elements)
    yield f"    {name} {{"
    yield f"        type {type_}"
    if listed:
        # Without any, nft refuses the braces.
        yield f"        elements = {{\n            {listed}\n        }}"
    yield "    }"


def _is_ipv4(address: str) -> bool:
    return bool(address) and ipaddress.ip_address(address).version == 4
