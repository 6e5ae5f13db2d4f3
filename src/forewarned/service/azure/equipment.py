"""What a VM has beside its place in the fleet: an image on its disk, and network interfaces.

Invariant: the control plane and the VM itself are told the same, so both are told from here.
"""

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import Final

# Three prefixes of Microsoft's, so that the three kinds of MAC addresses never overlap.
_IPV4_MACS: Final = "000D3A"
_IPV6_MACS: Final = "6045BD"
_FURTHER_MACS: Final = "002248"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The marketplace image that a VM was made from; empty if it was made from another."""

    publisher: str = ""
    offer: str = ""
    sku: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    mac_address: str
    """Twelve hexadecimal digits in upper case: `000D3A080004`."""
    private_address: str
    """Empty where it has none."""
    public_address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    image: Image = Image()
    interfaces: tuple[Interface, ...] = ()
    """The primary one first."""


def mac_address(address: str, vm_id: str, number: int = 0) -> str:
    """The MAC address of a VM's interface, by the interface's number.

    The first is told by the VM's address: no two VMs have the same one, so within a range of
    16 million addresses (`10.0.0.0/8`) no two have the same MAC address either. Further ones, and
    that of a VM which has no address, follow from its id.
    """
    if number or not address:
        digest = hashlib.sha256(f"{vm_id.lower()}/{number}".encode()).hexdigest()
        return _FURTHER_MACS + digest[:6].upper()
    parsed = ipaddress.ip_address(address)
    prefix = _IPV4_MACS if parsed.version == 4 else _IPV6_MACS
    return f"{prefix}{int(parsed) & 0xFFFFFF:06X}"


def dashed(mac: str) -> str:
    """As the control plane writes it: `00-0D-3A-08-00-04`."""
    return "-".join(mac[at : at + 2] for at in range(0, len(mac), 2))
