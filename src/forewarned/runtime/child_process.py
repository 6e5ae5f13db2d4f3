"""The protocol between the supervisor and the processes it starts, from the child's side.

A child reads all it needs as one line from its standard input, which then stays open: end of file
means that the supervisor has died. On its standard output it reports once that it is ready, or why
it can't start.
"""

import asyncio
import ctypes
import os
import signal
import socket
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from forewarned.config.values import DatabaseUrl, show
from forewarned.runtime.listeners.sockets import Addresses
from forewarned.runtime.settings import (
    SETTINGS,
    DeclaredActuators,
    DeclaredSubscriptions,
    Resolved,
    Settings,
)

_PR_SET_PDEATHSIG: Final = 1
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    supervisor: int
    """Its process id."""
    listener: int | None
    """The descriptor of the socket to serve; None for the actuators, which serve no one."""
    arm_listener: int | None
    """The descriptor of the writer's second socket, for ARM; None where ARM is not served."""
    addresses: Addresses
    values: dict[str, str]
    """Every setting, as its parser reads it."""
    origin: dict[str, str]
    file: str | None
    # Any: what TOML is made of.
    actuators: dict[str, Any] = {}
    """As the settings file has them."""
    sources: list[Any] = []
    """The same."""
    actuators_folder: str = ""
    subscriptions: list[Any] = []
    """As the settings file has them."""
    subscriptions_folder: str = ""
    token: str = ""
    """What the actuators show at the control listener, and the writer knows them by."""

    @property
    def descriptors(self) -> list[int]:
        """Those that the child inherits."""
        return [each for each in (self.listener, self.arm_listener) if each is not None]

    def resolved(self) -> Resolved:
        # Each comes from its own field's parser, so each has its own field's type.
        parsed: dict[str, Any] = {
            each.name: each.parse(self.values[each.name]) for each in SETTINGS
        }
        return Resolved(
            settings=Settings(**parsed),
            origin=MappingProxyType(self.origin),
            file=None if self.file is None else Path(self.file),
            actuators=DeclaredActuators(
                declared=self.actuators,
                sources=tuple(self.sources),
                folder=Path(self.actuators_folder),
            ),
            subscriptions=DeclaredSubscriptions(
                tables=tuple(self.subscriptions), folder=Path(self.subscriptions_folder)
            ),
        )


class StartResult(msgspec.Struct, frozen=True):
    failure: str | None = None
    """Why the child can't start; None where it has."""


def brief(
    resolved: Resolved,
    *,
    supervisor: int,
    listener: int | None,
    arm_listener: int | None = None,
    addresses: Addresses,
    token: str = "",
) -> Brief:
    return Brief(
        supervisor=supervisor,
        listener=listener,
        arm_listener=arm_listener,
        addresses=addresses,
        values={each.name: _shown(getattr(resolved.settings, each.name)) for each in SETTINGS},
        origin=dict(resolved.origin),
        file=None if resolved.file is None else str(resolved.file),
        actuators=dict(resolved.actuators.declared),
        sources=list(resolved.actuators.sources),
        actuators_folder=str(resolved.actuators.folder),
        subscriptions=list(resolved.subscriptions.tables),
        subscriptions_folder=str(resolved.subscriptions.folder),
        token=token,
    )


def receive() -> Brief:
    """To be called first. Ends the process if the supervisor has died."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        sys.exit(1)
    told = msgspec.json.decode(line, type=Brief)
    _die_with(told.supervisor)
    return told


def listener(told: Brief) -> socket.socket:
    """The socket to serve."""
    if told.listener is None:
        raise ValueError("this process has no socket to serve")
    return socket.socket(fileno=told.listener)


def report(result: StartResult) -> None:
    """To be called once. From then on standard output goes where the log goes."""
    os.write(_STDOUT, msgspec.json.encode(result) + b"\n")
    os.dup2(_STDERR, _STDOUT)


def told_to_stop() -> asyncio.Event:
    """Set by SIGTERM, and when the supervisor has died."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def look() -> None:
        if not os.read(_STDIN, 1024):
            loop.remove_reader(_STDIN)
            stop.set()

    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(_STDIN, look)
    return stop


def _die_with(supervisor: int) -> None:
    """Killing the supervisor kills its children too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have died before that was asked for.
    if os.getppid() != supervisor:
        sys.exit(1)


def _shown(value: object) -> str:
    # A relative path might read like `none`, which stands for no path.
    if isinstance(value, Path) and not value.is_absolute():
        return f"./{value}"
    # Only the child reads this, and it signs in to the database.
    return value.text if isinstance(value, DatabaseUrl) else show(value)
