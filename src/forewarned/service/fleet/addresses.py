"""How addresses are written: in one way, so that they can be compared as text."""

import ipaddress


def plain_address(address: str) -> str:
    """As callers are known by: IPv6 has many spellings, and one for IPv4. Raises ValueError."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        # The link that an address is on is a matter of the machine that names it.
        found = found.ipv4_mapped or ipaddress.IPv6Address(int(found))
    return str(found)


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
