"""Connections to the libvirts of hosts: opened when first needed, and again after a break."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, Self, TypeVar

import libvirt

from forewarned.actuators.driver import DriverError, TryLaterError
from forewarned.actuators.libvirt.connections.event_thread import event_thread
from forewarned.actuators.libvirt.connections.failures import driver_error, is_code, message
from forewarned.actuators.libvirt.connections.threads import in_thread
from forewarned.core.ids import same_name

T = TypeVar("T")
OPENING: Final = timedelta(seconds=20)
_KEEPALIVE: Final = (5, 3)
"""Seconds between questions whether a host is there, and how many it may leave unanswered."""


class Host:
    def __init__(self, name: str, uri: str) -> None:
        self.name = name
        self.uri = uri
        self._connection: libvirt.virConnect | None = None
        self._opening = asyncio.Lock()

    async def call(self, call: Callable[[libvirt.virConnect], T]) -> T:
        """Raises DriverError: TryLaterError if the host can't be reached, so nothing was done."""
        connection = await self.connection()
        try:
            return await in_thread(lambda: call(connection))
        except libvirt.libvirtError as error:
            if not connection.isAlive():
                raise DriverError(
                    f"the connection to libvirt on {self.name} broke: {message(error)}"
                ) from error
            raise driver_error(error, host=self.name) from error

    async def connection(self) -> libvirt.virConnect:
        async with self._opening:
            if self._connection is not None and not self._connection.isAlive():
                await self.close()
            if self._connection is None:
                self._connection = await self._open()
            return self._connection

    async def _open(self) -> libvirt.virConnect:
        try:
            async with asyncio.timeout(OPENING.total_seconds()):
                return await in_thread(self._open_now)
        except libvirt.libvirtError as error:
            raise TryLaterError(f"libvirt on {self.name}: {message(error)}") from error
        except TimeoutError as error:
            raise TryLaterError(f"libvirt on {self.name} at {self.uri} does not answer") from error

    def _open_now(self) -> libvirt.virConnect:
        connection = libvirt.open(self.uri)
        try:
            connection.setKeepAlive(*_KEEPALIVE)
        except libvirt.libvirtError as error:
            # A libvirt without a daemon, such as the one for tests, can't be lost.
            if not is_code(error, libvirt.VIR_ERR_NO_SUPPORT):
                raise
        return connection

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(libvirt.libvirtError):
                await in_thread(connection.close)


class Hosts:
    """Those of the settings, and others as VMs are found to be there."""

    def __init__(self, names: Iterable[str], *, uri: str) -> None:
        """`uri` has `{host}` where the host's name belongs."""
        self._uri = uri
        self._hosts = {name: self._new(name) for name in names}
        self.targets = tuple(self._hosts.values())
        """Those of the settings. VMs are found on others too, but not moved there."""
        self._resources = contextlib.ExitStack()

    async def __aenter__(self) -> Self:
        self._resources.enter_context(event_thread())
        return self

    async def __aexit__(self, *_: object) -> None:
        for host in self._hosts.values():
            await host.close()
        await in_thread(self._resources.close)

    def _new(self, name: str) -> Host:
        return Host(name, self._uri.replace("{host}", name))

    def host(self, name: str) -> Host:
        for known in self._hosts.values():
            if same_name(known.name, name):
                return known
        return self._hosts.setdefault(name, self._new(name))

    def others(self, host: Host) -> list[Host]:
        return [each for each in self._hosts.values() if each is not host]
