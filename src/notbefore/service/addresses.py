"""How addresses of VMs are written: in one way, so that they can be compared as text."""

import ipaddress


def plain_address(address: str) -> str:
    """As callers are known by: IPv6 has many spellings, and one for IPv4. Raises ValueError."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        # The link that an address is on is a matter of the machine that names it.
        found = found.ipv4_mapped or ipaddress.IPv6Address(int(found))
    return str(found)
