"""The addresses a server listens at, where none runs: whether it could."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forewarned.cli.doctor.finding import Finding, problem, warning
from forewarned.config.values import Address
from forewarned.metadata.options import Identification
from forewarned.runtime.listeners.port_marks import SWITCH
from forewarned.runtime.settings import AZURE_ADDRESS, Mode, Settings

_SPARE: Final = 500
"""Files that a server has open besides its VMs' connections."""


def of_listeners(settings: Settings) -> Iterator[Finding]:
    named = {
        "metadata": settings.metadata,
        "control": settings.control,
        "arm": settings.arm,
        "feed": settings.feed,
    }
    for name, address in named.items():
        if address is not None and (error := _failure(address)) is not None:
            yield _finding(name, address, error)


def _failure(address: Address) -> OSError | None:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.create_server((address.host, address.port), family=family):
            return None
    except OSError as error:
        return error


def _finding(name: str, address: Address, error: OSError) -> Finding:
    where = f"{name} = {address}"
    match error.errno:
        case errno.EADDRINUSE:
            return problem(
                "port_taken",
                where=where,
                what="another program listens there",
                todo=f"`ss -ltnp 'sport = :{address.port}'` says which. Stop it, or give {name}"
                " another address.",
            )
        case errno.EADDRNOTAVAIL if address.host == AZURE_ADDRESS:
            return problem(
                "address_missing",
                where=where,
                what=f"no interface of this machine has the address {AZURE_ADDRESS}",
                todo=f"Run `ip address add {AZURE_ADDRESS}/32 dev lo` before the server starts."
                " The unit forewarned-metadata-address does so.",
            )
        case errno.EADDRNOTAVAIL:
            return problem(
                "address_missing",
                where=where,
                what="no interface of this machine has this address",
                todo=f"Give {name} one of those that `ip address` lists.",
            )
        case errno.EACCES:
            return problem(
                "port_forbidden",
                where=where,
                what=f"this user may not listen on port {address.port}",
                todo="Give the server CAP_NET_BIND_SERVICE, as the systemd unit does, or a port"
                " above 1023.",
            )
        case _:
            return problem("cannot_listen", where=where, what=error.strerror or str(error))


def of_port_marks(settings: Settings, switch: Path = SWITCH) -> Iterator[Finding]:
    """Only looks: the server itself turns the switch on if it may."""
    if settings.identity is not Identification.PORT_MARKS:
        return
    try:
        is_on = switch.read_text().strip() != "0"
    except OSError:
        is_on = False
    if not is_on:
        yield warning(
            "port_marks_off",
            where=str(switch),
            what="the kernel does not pass port marks on to connections",
            todo="Put `net.ipv4.tcp_fwmark_accept = 1` into a file of /etc/sysctl.d, and run"
            " `sysctl --system`. A server that runs as root sets the switch by itself.",
        )


def of_open_files(settings: Settings, limit: int) -> Iterator[Finding]:
    """`limit` is how many files a process may have open."""
    if settings.mode is Mode.SERVICE and limit < settings.max_connections + _SPARE:
        yield warning(
            "few_open_files",
            where=f"max_connections = {settings.max_connections}",
            what=f"the server may have at most {limit} files open, too few for so many connections",
            todo="Set LimitNOFILE=65536 in the unit, or `ulimit -n 65536`, or lower"
            " max_connections.",
        )
