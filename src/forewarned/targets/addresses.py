"""Which addresses a request may go to, where others than the operator can say where it goes (S1).

Names are resolved once, and the connection is made to an address that was looked at: what a name
resolves to a moment later does not matter. Addresses that have another inside, as IPv6 has for
IPv4, are judged by that.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

from forewarned.targets.errors import TargetError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses. Raises OSError."""
_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network


class Reach(StrEnum):
    """Where requests may go. Each has those before it."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    """This machine, too: for an emulator."""
    PRIVATE = "private"
    """Private networks, too."""


def _networks(text: str) -> tuple[_Network, ...]:
    return tuple(ip_network(network) for network in text.split())


_LOOPBACK: Final = _networks("127.0.0.0/8 ::1/128")
_PRIVATE: Final = _networks(
    "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 198.18.0.0/15 192.0.2.0/24"
    " 198.51.100.0/24 203.0.113.0/24 fc00::/7 fec0::/10 2001:db8::/32 64:ff9b:1::/48"
)
# Metadata services hand out credentials; the addresses are those of Azure and AWS (link-local),
# Azure's wire server, Alibaba, Oracle, and those of AWS and Google over IPv6. No setting allows
# them.
_NEVER: Final = _networks(
    "169.254.0.0/16 168.63.129.16/32 100.100.100.200/32 192.0.0.0/24 fd00:ec2::254/128"
    " fd20:ce::254/128 fe80::/10 0.0.0.0/8 224.0.0.0/4 240.0.0.0/4 192.88.99.0/24 ::/128 ff00::/8"
    " 100::/64"
)
_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
_COMPATIBLE: Final = IPv6Network("::/96")
_UNLESS: Final = "; set publishing_private_addresses to allow it"


async def permitted(
    host: str, port: int, *, reach: Reach, resolve: Resolve | None = None
) -> list[str]:
    """The addresses of a host that may be connected to. Raises TargetError if there are none."""
    try:
        found = await (resolve or _resolve)(host, port)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"can't resolve {host}: {why}") from error
    allowed = [address for address in found if refusal(address, reach) is None]
    if not allowed:
        why = (refusal(found[0], reach) if found else None) or "it has no address"
        raise TargetError(f"{host} is not allowed as a target: {why}")
    return allowed


def refusal(address: str, reach: Reach) -> str | None:
    """Why an address may not be connected to; None if it may."""
    try:
        whole = ip_address(address.partition("%")[0])
    except ValueError:
        return f"{address} is not an address"
    inner = _embedded(whole)
    told = f"{address} is"
    if any(_is_in(each, _NEVER) for each in (inner, *_perhaps_embedded(whole))):
        return f"{told} link-local, multicast, reserved, or the address of a metadata service"
    if _is_in(inner, _LOOPBACK):
        return f"{told} an address of this machine{_UNLESS}" if reach is Reach.PUBLIC else None
    if _is_in(inner, _PRIVATE):
        return None if reach is Reach.PRIVATE else f"{told} in a private network{_UNLESS}"
    if isinstance(inner, IPv6Address) and inner not in _UNICAST:
        return f"{told} reserved"
    return None


def _embedded(address: _Address) -> _Address:
    """The IPv4 address inside, where there is one that packets would go to."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    is_compatible = address in _COMPATIBLE and int(address) > 1
    if is_compatible or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _perhaps_embedded(address: _Address) -> list[IPv4Address]:
    """What a network's own NAT64 may make of an address.

    Its prefix may have 48, 56, 64 or 96 bits (RFC 8215), which only that network knows, and each
    puts the IPv4 address elsewhere (RFC 6052, 2.2).
    """
    if address not in _LOCAL_NAT64:
        return []
    bits = int(address)
    found = (
        (bits >> 48 & 0xFFFF_0000) | (bits >> 40 & 0xFFFF),
        (bits >> 40 & 0xFF00_0000) | (bits >> 32 & 0xFF_FFFF),
        bits >> 24 & 0xFFFF_FFFF,
        bits & 0xFFFF_FFFF,
    )
    # Read at the wrong place, most addresses begin with zeros.
    return [each for each in map(IPv4Address, found) if each not in _THIS_NETWORK]


def _is_in(address: _Address, networks: Iterable[_Network]) -> bool:
    return any(address in network for network in networks)


async def _resolve(host: str, port: int) -> list[str]:
    # May take half a minute. Servers run on uvloop, which has threads for this alone; asyncio's own
    # loop would take those of `to_thread`.
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
