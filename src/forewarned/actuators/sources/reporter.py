"""Lists the VMs of an actuator's platform again and again, and reports each listing to the server.

Invariant: what is reported as a listing is all that the platform said. Where it did not answer, the
report says so, and the server removes nothing.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from forewarned.actuators.desk import DeskUnavailableError
from forewarned.actuators.driver import DriverError
from forewarned.actuators.sources.table import SourceTable
from forewarned.service.sources.listing import LONGEST_LISTING, Listing

_log = logging.getLogger(__name__)

_LONGEST_LISTING: Final = LONGEST_LISTING.total_seconds()


@runtime_checkable
class PlatformLister(Protocol):
    """A driver that can list its platform."""

    async def list_vms(self) -> Listing:
        """All VMs that it has. Raises DriverError."""


@runtime_checkable
class ChangeTeller(Protocol):
    """A driver whose platform says when VMs come, go, or change."""

    async def until_changed(self) -> None:
        """Return some time after the next change. Raises DriverError if it can't be told."""


class SourceChanges(Protocol):
    """What a listing has changed in the fleet, by the names of VMs."""

    @property
    def added(self) -> Sequence[str]: ...
    @property
    def changed(self) -> Sequence[str]: ...
    @property
    def removed(self) -> Sequence[str]: ...


class SourceDesk(Protocol):
    """All of its methods may raise DeskUnavailableError."""

    async def begin_listing(self) -> datetime:
        """The server's time, before the platform is listed."""

    async def report_listing(
        self, source: SourceTable, listing: Listing, *, began_at: datetime
    ) -> SourceChanges: ...
    async def report_no_listing(self, source: SourceTable, error: str) -> None: ...


class SourceReporter:
    def __init__(self, source: SourceTable, lister: PlatformLister, desk: SourceDesk) -> None:
        self._source = source
        self._lister = lister
        self._desk = desk
        self._failure = ""
        """Why the last report could not be made; empty if it was."""

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.report()
                self._failure = ""
            except DeskUnavailableError as error:
                self._warn("a listing can't be reported for now", str(error))
            await self._pause(stop)

    async def report(self) -> None:
        # A listing is as old as its beginning: what is changed meanwhile it may have missed.
        began_at = await self._desk.begin_listing()
        try:
            async with asyncio.timeout(_LONGEST_LISTING):
                listing = await self._lister.list_vms()
        except (DriverError, TimeoutError) as error:
            why = str(error) or f"the platform took longer than {_LONGEST_LISTING:.0f}s"
            await self._desk.report_no_listing(self._source, why)
            self._warn("a platform can't be listed", why)
            return
        changes = await self._desk.report_listing(self._source, listing, began_at=began_at)
        if changes.added or changes.changed or changes.removed:
            counts = {
                "source": self._source.actuator,
                "added": len(changes.added),
                "changed": len(changes.changed),
                "removed": len(changes.removed),
            }
            _log.info("the fleet is in step with its platform", extra=counts)

    def _warn(self, message: str, why: str) -> None:
        """Once for each failure, not every half minute."""
        if why != self._failure:
            _log.warning(message, extra={"source": self._source.actuator, "why": why})
        self._failure = why

    async def _pause(self, stop: asyncio.Event) -> None:
        waits = [asyncio.create_task(_stopped(stop))]
        if isinstance(self._lister, ChangeTeller):
            waits.append(asyncio.create_task(self._until_changed(self._lister)))
        await asyncio.wait(
            waits,
            timeout=self._source.every.total_seconds(),
            return_when=asyncio.FIRST_COMPLETED,
        )
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    async def _until_changed(self, teller: ChangeTeller) -> None:
        try:
            await teller.until_changed()
        except DriverError:
            # No one tells of changes for now: the next listing says why.
            await asyncio.Event().wait()


async def _stopped(stop: asyncio.Event) -> None:
    await stop.wait()
