"""The sockets a server listens at, opened before the processes that serve them start."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from forewarned.clock import monotonic
from forewarned.config.values import Address
from forewarned.metadata.http.sockets import listen
from forewarned.metadata.options import Identification, Options
from forewarned.runtime.listeners import port_marks
from forewarned.runtime.listeners.acceptor import Limits
from forewarned.runtime.settings import Mode, Settings

LINGER: Final = timedelta(seconds=2)
"""How long a killed server's addresses and locks may take to become free.

Its processes die after it does.
"""
_LOOK_AGAIN: Final = 0.02

T = TypeVar("T")


class StartError(Exception):
    """The server can't start. The message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where a server is reached."""

    metadata_url: str
    control_url: str
    arm_url: str | None
    """None where ARM is not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    metadata: socket.socket
    control: socket.socket
    arm: socket.socket | None
    """None where ARM is not served."""
    addresses: Addresses


@asynccontextmanager
async def open_listeners(settings: Settings) -> AsyncIterator[Listeners]:
    """Raises StartError."""
    with ExitStack() as stack:
        metadata = stack.enter_context(await open_metadata(settings))
        control = stack.enter_context(await control_listener(settings.control))
        arm = None
        if settings.arm is not None:
            arm = stack.enter_context(await _listening("arm", settings.arm, _listen))
        addresses = Addresses(
            metadata_url=_url(metadata),
            control_url=_url(control, scheme="https" if settings.control_is_tls else "http"),
            arm_url=None if arm is None else _url(arm, scheme="https"),
        )
        yield Listeners(metadata=metadata, control=control, arm=arm, addresses=addresses)


async def open_metadata(settings: Settings) -> socket.socket:
    """Raises StartError, for example if the kernel would not say which port a VM comes from."""
    if settings.identity is Identification.PORT_MARKS and (why := port_marks.why_unreadable()):
        raise StartError(f"can't identify VMs by port marks: {why}")
    return await metadata_listener(settings.metadata)


async def patiently(
    attempt: Callable[[], Awaitable[T]], *, passes: Callable[[Exception], bool]
) -> T:
    """Try again for a while what fails because a server that was killed is not quite gone."""
    deadline = monotonic() + LINGER
    while True:
        try:
            return await attempt()
        except Exception as error:
            if not passes(error) or monotonic() >= deadline:
                raise
        await asyncio.sleep(_LOOK_AGAIN)


async def metadata_listener(address: Address) -> socket.socket:
    """Raises StartError."""
    return await _listening("metadata", address, lambda at: listen(at.host, at.port))


async def feed_listener(address: Address) -> socket.socket:
    """Raises StartError."""
    return await _listening("feed", address, _listen)


async def control_listener(address: Address) -> socket.socket:
    """Raises StartError."""
    return await _listening("control", address, _listen)


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.create_server((address.host, address.port), family=family)


def metadata_options(settings: Settings) -> Options:
    return Options(
        host=settings.metadata.host,
        port=settings.metadata.port,
        emulator=settings.mode is Mode.EMULATOR,
        emulator_access=settings.emulator_access,
        default_vm=settings.default_vm,
        identification=settings.identity,
        rate_limit=settings.rate if settings.rate_limit else None,
        first_call_delay=settings.first_call_delay,
        strict_forwarding=settings.strict_forwarding,
        hosts=frozenset(name.lower() for name in settings.hosts),
        max_connections=settings.max_connections,
        max_connections_per_vm=settings.max_connections_per_vm,
    )


def limits(settings: Settings) -> Limits:
    """How many connections the control listener holds, and the arm listener as many."""
    return Limits(
        most=settings.max_control_connections,
        most_of_one_address=settings.max_control_connections_per_address,
    )


def _url(listener: socket.socket, *, scheme: str = "http") -> str:
    return f"{scheme}://{Address(*listener.getsockname()[:2])}"


async def _listening(
    which: str, address: Address, make: Callable[[Address], socket.socket]
) -> socket.socket:
    async def attempt() -> socket.socket:
        return make(address)

    try:
        return await patiently(attempt, passes=_is_taken)
    except OSError as error:
        raise StartError(
            f"can't listen on {address} ({error.strerror}): {_advice(which, error)}"
        ) from error


def _advice(which: str, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"stop the program that listens there, or give --{which} another address; port 0"
                " picks any free port"
            )
        case errno.EADDRNOTAVAIL:
            return (
                "no interface of this machine has that address: add it to one, or give"
                f" --{which} another address"
            )
        case errno.EACCES:
            return (
                "this user may not listen on that port: give the server CAP_NET_BIND_SERVICE, or"
                f" give --{which} a port above 1023"
            )
        case _:
            return f"give --{which} another address"


def _is_taken(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE
