"""One spelling for every address, so that addresses can be compared as text."""

import ipaddress
from typing import Final

_PORT: Final = "port:"


def plain_address(address: str) -> str:
    """In its one canonical spelling; IPv4 in IPv6 becomes IPv4. Raises ValueError."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        # The zone of a link-local address means something only on the machine that named it.
        found = found.ipv4_mapped or ipaddress.IPv6Address(int(found))
    return str(found)


def port_address(mark: int) -> str:
    """A port of a hypervisor's bridge, where the address of a VM would stand: `port:101`.

    No IP address looks like that, so one of the two can't be taken for the other.
    """
    return f"{_PORT}{mark}"


def port_mark(address: str) -> int | None:
    """The mark of what `port_address` made; None for an IP address."""
    return int(address.removeprefix(_PORT)) if address.startswith(_PORT) else None


def neighbourhood(address: str) -> str:
    """What counts as one caller: one household has as many addresses of IPv6 as it likes.

    All of them are within a network of 64 bits. What is no address is its own.
    """
    try:
        plain = ipaddress.ip_address(plain_address(address))
    except ValueError:
        return address
    if isinstance(plain, ipaddress.IPv4Address):
        return str(plain)
    return str(ipaddress.ip_network((int(plain) >> 64 << 64, 64)))
