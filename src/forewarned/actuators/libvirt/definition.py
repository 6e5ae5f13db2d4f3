"""A domain's XML, and what it says about the VM. Pure."""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Final

VM_NAMESPACE: Final = "urn:forewarned:vm"
"""Of the metadata in which operators say what set a VM belongs to."""
_CHOSEN: Final = re.compile(r"(vnet|macvtap|vif|tap)\d+")
"""Names of ports that libvirt makes up, and changes at the next start."""
_UNITS: Final = {"b": 1, "bytes": 1, "k": 1024, "KiB": 1024, "M": 1 << 20, "MiB": 1 << 20} | {
    "G": 1 << 30,
    "GiB": 1 << 30,
    "T": 1 << 40,
    "TiB": 1 << 40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    mac: str
    network: str
    """The libvirt network it is connected to; empty for a bridge or another kind."""
    device: str
    """Its port on the host's bridge; empty if libvirt chooses the name at each start."""
    addresses: tuple[str, ...]
    """Those that the platform allows it, or says it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    name: str
    uuid: str
    memory: int
    """Bytes."""
    host_devices: int
    """How many devices of its host it has: a VM that has one can't be migrated."""
    on_reboot: str
    """What libvirt does when the guest reboots: `restart` unless someone has changed it."""
    interfaces: tuple[Interface, ...]
    availability_set: str
    """Empty for a VM that belongs to none."""
    zone: str
    address: str
    """That by which the operator says it is known; empty if the operator has said nothing."""
    port_mark: int | None
    """What its host marks with all that comes from its port, as the operator says; or None."""


def parse_definition(text: str) -> Definition:
    # libvirt wrote it itself, and writes no entities.
    domain = ET.fromstring(text)  # noqa: S314
    settings = domain.find(f"metadata/{{{VM_NAMESPACE}}}vm")
    own = {} if settings is None else settings.attrib
    return Definition(
        name=domain.findtext("name", ""),
        uuid=domain.findtext("uuid", ""),
        memory=_memory(domain.find("memory")),
        host_devices=len(domain.findall("devices/hostdev")),
        on_reboot=domain.findtext("on_reboot", "restart"),
        interfaces=tuple(map(_interface, domain.findall("devices/interface"))),
        availability_set=own.get("availability-set", ""),
        zone=own.get("zone", ""),
        address=own.get("address", ""),
        port_mark=int(mark) if (mark := own.get("port-mark", "")).isdecimal() else None,
    )


def _memory(element: ET.Element | None) -> int:
    if element is None:
        return 0
    return int(element.text or 0) * _UNITS.get(element.get("unit", "KiB"), 1024)


def _interface(element: ET.Element) -> Interface:
    mac, source, target = (element.find(name) for name in ("mac", "source", "target"))
    device = "" if target is None else target.get("dev", "")
    filtered = [
        parameter.get("value", "")
        for parameter in element.findall("filterref/parameter")
        if parameter.get("name") in {"IP", "IPV6"}
    ]
    configured = [ip.get("address", "") for ip in element.findall("ip")]
    return Interface(
        mac="" if mac is None else mac.get("address", "").lower(),
        network="" if source is None else source.get("network", ""),
        device="" if _CHOSEN.fullmatch(device) else device,
        addresses=tuple(dict.fromkeys(filter(None, [*filtered, *configured]))),
    )
