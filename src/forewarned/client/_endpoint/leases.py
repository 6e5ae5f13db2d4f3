"""Option 245 of DHCP, as DHCP clients write it down: where scheduled events are. Pure.

Four bytes of an IPv4 address, in the notation of the DHCP client. Later leases of a file are
newer, so the last one counts.
"""

import re
from ipaddress import IPv4Address
from typing import Final

# dhclient: `option unknown-245 a8:3f:81:10;`, as text where the bytes happen to be printable.
_DHCLIENT: Final = re.compile(
    r"^\s*(?:option\s+)?(?:unknown-245|azure-endpoint)\s+(?P<value>[^;]+);", flags=re.MULTILINE
)
# systemd-networkd and NetworkManager's own client: `OPTION_245=a83f8110`; dhcpcd-like dumps and
# NetworkManager's state: `unknown_245=a8:3f:81:10`, `private_245=168.63.129.16`.
_ASSIGNED: Final = re.compile(
    r"^\s*(?:OPTION_|option_|unknown_|unknown-|private_|new_unknown_)245\s*=\s*(?P<value>\S+)\s*$",
    flags=re.MULTILINE,
)
_QUOTED: Final = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)", flags=re.DOTALL)


def endpoint_in(lease: str) -> IPv4Address | None:
    """The address that a lease file names last, or None if it names none."""
    values = [found["value"] for form in (_DHCLIENT, _ASSIGNED) for found in form.finditer(lease)]
    for value in reversed(values):
        address = _address(value.strip())
        if address is not None:
            return address
    return None


def _address(value: str) -> IPv4Address | None:
    if quoted := _QUOTED.fullmatch(value):
        return _packed(_ESCAPE.sub(_unescaped, quoted["text"].encode("latin-1", "replace")))
    try:
        if "." in value:
            return IPv4Address(value)
        # dhclient leaves out leading zeros: `a8:3f:81:0`.
        parts = value.split(":") if ":" in value else re.findall("..?", value)
        return _packed(bytes(int(part, 16) for part in parts))
    except ValueError:
        return None


def _packed(octets: bytes) -> IPv4Address | None:
    # Nothing serves at 0.0.0.0, and a lease may hold it for "none".
    return IPv4Address(octets) if len(octets) == 4 and any(octets) else None


def _unescaped(found: re.Match[bytes]) -> bytes:
    escaped = found[1]
    return bytes([int(escaped, 8) & 0xFF]) if len(escaped) == 3 else escaped
