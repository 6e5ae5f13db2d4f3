"""The one DHCP exchange that says where scheduled events are, as bytes (RFC 2131). Pure."""

import struct
from ipaddress import IPv4Address
from typing import Final

ENDPOINT: Final = 245
_COOKIE: Final = b"\x63\x82\x53\x63"
_HEADER: Final = struct.Struct("!BBBBIHHIIII16s64s128s")
_REQUEST, _REPLY = 1, 2
_ETHERNET: Final = 1
_BROADCAST: Final = 0x8000
_PAD, _END = 0, 255
_MESSAGE_TYPE, _WISHES = 53, 55
_DISCOVER: Final = 1
_OFFERS: Final = {2, 5}  # an OFFER, or the ACK of a server that offers and commits at once
_GATEWAY: Final = 3
_ROUTES: Final = 249


def discover(*, transaction: int, mac: bytes) -> bytes:
    """A DISCOVER that asks for option 245; it reserves nothing that is not taken up."""
    header = _HEADER.pack(
        _REQUEST,
        _ETHERNET,
        len(mac),
        0,
        transaction,
        0,
        # The answer has to reach a socket whose address the server need not know.
        _BROADCAST,
        0,
        0,
        0,
        0,
        mac.ljust(16, b"\0"),
        b"",
        b"",
    )
    options = bytes([_MESSAGE_TYPE, 1, _DISCOVER, _WISHES, 3, _GATEWAY, ENDPOINT, _ROUTES, _END])
    # Some servers and relays drop what is shorter than BOOTP's 300 bytes.
    return (header + _COOKIE + options).ljust(300, b"\0")


def endpoint_of(packet: bytes, *, transaction: int, mac: bytes) -> IPv4Address | None:
    """The address in an answer to our DISCOVER; None if it is not one, or does not have any."""
    if len(packet) < _HEADER.size + len(_COOKIE):
        return None
    fields = _HEADER.unpack_from(packet)
    is_ours = fields[0] == _REPLY and fields[4] == transaction and fields[11][: len(mac)] == mac
    after = packet[_HEADER.size :]
    if not is_ours or not after.startswith(_COOKIE):
        return None
    options = _options(after[len(_COOKIE) :])
    if options.get(_MESSAGE_TYPE, b"\0")[0] not in _OFFERS:
        return None
    address = options.get(ENDPOINT, b"")
    return IPv4Address(address) if len(address) == 4 else None


def _options(text: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    place = 0
    while place < len(text) and text[place] != _END:
        if text[place] == _PAD:
            place += 1
            continue
        if place + 1 >= len(text):
            break
        code, length = text[place], text[place + 1]
        value = text[place + 2 : place + 2 + length]
        if len(value) < length or not length:
            break
        # An option that comes in parts is one option (RFC 3396).
        found[code] = found.get(code, b"") + value
        place += 2 + length
    return found
