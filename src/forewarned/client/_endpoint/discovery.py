"""Where the scheduled events of this machine are.

In this order: what FOREWARNED_ENDPOINT says; Azure's own address, if a metadata service answers
there; option 245 of the DHCP leases on this machine (VMs outside a virtual network); what
SCHEDULEDEVENTSIP says, where Azure's samples store that option; and a DHCP exchange of our own.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Final

from forewarned.client import _wire
from forewarned.client._endpoint.leases import endpoint_in
from forewarned.client._errors import EndpointNotFoundError
from forewarned.config.endpoints import endpoint_url

ENDPOINT_VARIABLE: Final = "FOREWARNED_ENDPOINT"
STORED_VARIABLE: Final = "SCHEDULEDEVENTSIP"
WELL_KNOWN: Final = "169.254.169.254"
_PROBING: Final = 2.0
_LONGEST_ANSWER: Final = 64 * 1024
_LARGEST_LEASE: Final = 1024 * 1024
_BUSY: Final = {410, 429}
_LINUX: Final = (
    "/var/lib/dhcp/*lease*",
    "/var/lib/dhclient/*lease*",
    "/run/systemd/netif/leases/*",
    "/run/NetworkManager/devices/*",
    "/var/lib/NetworkManager/*lease*",
)
_LEASES: Final[Mapping[str, Sequence[str]]] = {
    "linux": _LINUX,
    "darwin": ("/var/db/dhcpclient/leases/*",),
    # Windows keeps leases in its registry, where SCHEDULEDEVENTSIP or an exchange is nearer.
    "win32": (),
}


def is_answered(address: str) -> bool:
    """Whether a metadata service is there: other clouds use the address, for something else."""
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - takes its time

    connection = HTTPConnection(address, timeout=_PROBING)
    try:
        connection.request("GET", "/metadata/versions", headers={"Metadata": "true"})
        response = connection.getresponse()
        body = response.read(_LONGEST_ANSWER)
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    # One that is updating itself or overwhelmed is there.
    is_busy = response.status in _BUSY or response.status >= 500
    return is_busy or (response.status == 200 and _wire.is_versions(body))


def ask_dhcp() -> IPv4Address | None:
    from forewarned.client._endpoint.dhcp_exchange import DhcpExchange  # noqa: PLC0415 - the last resort

    return DhcpExchange().ask()


def _environment() -> Mapping[str, str]:
    return os.environ


def _patterns() -> Sequence[str]:
    return _LEASES.get(sys.platform, _LINUX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Where to look; every place can be another one, for tests."""

    environment: Mapping[str, str] = field(default_factory=_environment)
    well_known: str = WELL_KNOWN
    leases: Sequence[str] = field(default_factory=_patterns)
    """Patterns of the files that DHCP clients keep leases in."""
    is_answered: Callable[[str], bool] = is_answered
    ask_dhcp: Callable[[], IPv4Address | None] = ask_dhcp

    def find(self) -> str:
        """The endpoint's URL; raises EndpointNotFoundError."""
        tried: list[str] = []
        if given := self.environment.get(ENDPOINT_VARIABLE):
            try:
                return endpoint_url(given)
            except ValueError as error:
                raise EndpointNotFoundError((f"{ENDPOINT_VARIABLE}: {error}",)) from None
        tried.append(f"{ENDPOINT_VARIABLE} is not set")
        if self.is_answered(self.well_known):
            return f"http://{self.well_known}"
        tried.append(f"no metadata service answers at {self.well_known}")
        for address in self._noted(tried):
            return f"http://{address}"
        return f"http://{self._asked(tried)}"

    def _noted(self, tried: list[str]) -> Iterator[IPv4Address]:
        for lease in self._newest_first():
            try:
                text = lease.read_bytes()[-_LARGEST_LEASE:].decode("latin-1")
            except OSError as error:
                tried.append(f"{lease} can't be read ({error.strerror})")
                continue
            if address := endpoint_in(text):
                yield address
        tried.append("no DHCP lease has option 245")
        stored = self.environment.get(STORED_VARIABLE, "")
        try:
            yield IPv4Address(stored.strip())
        except AddressValueError:
            said = f"is {stored!r}, which is not an address" if stored else "is not set"
            tried.append(f"{STORED_VARIABLE} {said}")

    def _newest_first(self) -> list[Path]:
        found: list[tuple[float, Path]] = []
        for pattern in self.leases:
            path = Path(pattern)
            try:
                files = [file for file in path.parent.glob(path.name) if file.is_file()]
                found.extend((file.stat().st_mtime, file) for file in files)
            except OSError:
                # Gone while we looked, or not for us to see.
                continue
        return [file for _, file in sorted(found, reverse=True)]

    def _asked(self, tried: list[str]) -> IPv4Address:
        try:
            address = self.ask_dhcp()
        except PermissionError:
            tried.append("asking a DHCP server needs root")
        except OSError as error:
            tried.append(f"can't query DHCP ({error.strerror or error})")
        else:
            if address is not None:
                return address
            tried.append("no DHCP server offers option 245")
        raise EndpointNotFoundError(tuple(tried))
