"""Asking a DHCP server for option 245, if no file or variable on the machine has it."""

import secrets
import socket
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from forewarned.client import _clock
from forewarned.client._endpoint import dhcp

_CLIENT, _SERVER = 68, 67
_LARGEST: Final = 4096
_MULTICAST: Final = 0x01
_NETWORK: Final = Path("/sys/class/net")


@dataclass(frozen=True, slots=True, kw_only=True)
class DhcpExchange:
    """Raises OSError if only root may use DHCP's port, or it is in use."""

    interface: str | None = None
    """Where to ask; None for wherever broadcasts go."""
    tries: Sequence[float] = (2.0, 4.0, 8.0)
    """Seconds to wait for an answer, each time that it is asked for."""

    def ask(self) -> IPv4Address | None:
        """The address, or None if no server offers one."""
        mac = self._mac()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            if self.interface is not None:
                if sys.platform == "linux":
                    device = socket.SO_BINDTODEVICE
                    channel.setsockopt(socket.SOL_SOCKET, device, self.interface.encode())
                else:
                    raise OSError("an interface for DHCP can be chosen only on Linux")
            channel.bind(("", _CLIENT))
            for patience in self.tries:
                transaction = secrets.randbits(32)
                packet = dhcp.discover(transaction=transaction, mac=mac)
                channel.sendto(packet, ("255.255.255.255", _SERVER))
                found = _listen(channel, transaction=transaction, mac=mac, patience=patience)
                if found is not None:
                    return found
        return None

    def _mac(self) -> bytes:
        if self.interface is not None:
            text = (_NETWORK / self.interface / "address").read_text()
            return bytes.fromhex(text.strip().replace(":", ""))
        mac = uuid.getnode().to_bytes(6, "big")
        # Where the system tells no address the library makes one up, and marks it so.
        return bytes([mac[0] & ~_MULTICAST]) + mac[1:]


def _listen(
    channel: socket.socket, *, transaction: int, mac: bytes, patience: float
) -> IPv4Address | None:
    until = _clock.monotonic() + patience
    while (left := until - _clock.monotonic()) > 0:
        channel.settimeout(left)
        try:
            packet = channel.recv(_LARGEST)
        except TimeoutError:
            return None
        # Broadcasts reach every host: responses to others are ignored.
        found = dhcp.endpoint_of(packet, transaction=transaction, mac=mac)
        if found is not None:
            return found
    return None
