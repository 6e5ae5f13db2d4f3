"""The sockets a server listens at, made before whoever serves them."""

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from forewarned.config.values import Address
from forewarned.metadata.options import Options
from forewarned.metadata.server import listen
from forewarned.runtime import reuseport
from forewarned.runtime.listeners.acceptor import Limits
from forewarned.runtime.settings import Mode, Settings

_log = logging.getLogger(__name__)

LINGER: Final = timedelta(seconds=2)
"""How long what a killed server held may take to become free: its processes die after it does."""
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


async def patiently(
    attempt: Callable[[], Awaitable[T]], *, passes: Callable[[Exception], bool]
) -> T:
    """Try again for a while what fails because a server that was killed is not quite gone."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LINGER.total_seconds()
    while True:
        try:
            return await attempt()
        except Exception as error:
            if not passes(error) or loop.time() >= deadline:
                raise
        await asyncio.sleep(_LOOK_AGAIN)


async def control_listener(address: Address) -> socket.socket:
    """Raises StartError."""
    return await _listening("control", address, lambda: _listen(address))


async def arm_listener(address: Address) -> socket.socket:
    """Raises StartError."""
    return await _listening("arm", address, lambda: _listen(address))


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.create_server((address.host, address.port), family=family)


async def metadata_listeners(address: Address, wanted: int) -> list[socket.socket]:
    """As many as wanted at one address, where the system can steer VMs to them; else one.

    Raises StartError.
    """
    first = await _listening("metadata", address, lambda: listen(address.host, address.port))
    if wanted == 1:
        return [first]
    # The first one was alone, and so it is known that nobody else listens there.
    address = Address(address.host, first.getsockname()[1])
    first.close()
    with ExitStack() as stack:
        several = [
            stack.enter_context(listen(address.host, address.port, shared=True))
            for _ in range(wanted)
        ]
        try:
            reuseport.steer(several)
        except OSError as error:
            _log.warning(
                "this system can't steer VMs to several pollers, so there is one",
                extra={"why": str(error), "wanted": wanted},
            )
        else:
            stack.pop_all()
            return several
    return [listen(address.host, address.port)]


def metadata_options(settings: Settings, *, pollers: int = 1) -> Options:
    """How each of so many metadata listeners is to behave."""
    return Options(
        host=settings.metadata.host,
        port=settings.metadata.port,
        emulator=settings.mode is Mode.EMULATOR,
        default_vm=settings.default_vm,
        rate_limit=settings.rate if settings.rate_limit else None,
        first_call_delay=settings.first_call_delay,
        strict_forwarding=settings.strict_forwarding,
        hosts=frozenset(name.lower() for name in settings.hosts),
        max_connections=-(-settings.max_connections // pollers),
        max_connections_per_vm=settings.max_connections_per_vm,
    )


def limits(settings: Settings) -> Limits:
    """How many connections the control listener holds, and the arm listener as many."""
    return Limits(
        most=settings.max_control_connections,
        most_of_one_address=settings.max_control_connections_per_address,
    )


def url(listener: socket.socket, *, scheme: str = "http") -> str:
    return f"{scheme}://{Address(*listener.getsockname()[:2])}"


def control_url(listener: socket.socket, settings: Settings) -> str:
    return url(listener, scheme="https" if settings.control_is_tls else "http")


def cannot_listen(which: str, address: Address, error: OSError) -> StartError:
    return StartError(
        f"can't listen at {address} ({error.strerror}): stop what listens there,"
        f" or give --{which} another address; port 0 takes any free one"
    )


async def _listening(
    which: str, address: Address, make: Callable[[], socket.socket]
) -> socket.socket:
    async def attempt() -> socket.socket:
        return make()

    try:
        return await patiently(attempt, passes=_is_taken)
    except OSError as error:
        raise cannot_listen(which, address, error) from error


def _is_taken(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE
