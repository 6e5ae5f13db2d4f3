"""A platform is listed again and again, and each listing told to the server."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from forewarned.actuators.desk import DeskUnavailableError
from forewarned.actuators.driver import DriverError
from forewarned.actuators.http_desk import HttpDesk, Server
from forewarned.actuators.sources.reporter import SourceChanges, SourceReporter
from forewarned.actuators.sources.table import SourceTable
from forewarned.clock import VirtualClock
from forewarned.service.sources.listing import ListedVm, Listing
from tests.actuators.served import rack1, served
from tests.builders import NOON
from tests.control.control_api import control_api

WEB: Final = ListedVm(
    vm_id="5b0b8a3e-0000-4000-8000-000000000001", name="shop", host="hv-a", address="10.9.0.1"
)
SOURCE: Final = SourceTable(actuator="rack1", every=timedelta(seconds=60), resource_group="shops")


class Cloud:
    """A stand-in for a platform, that is told what to say."""

    def __init__(self, *said: Listing | DriverError) -> None:
        self._said = [*said]
        self.changed = asyncio.Event()

    async def list_vms(self) -> Listing:
        said = self._said.pop(0) if len(self._said) > 1 else self._said[0]
        if isinstance(said, DriverError):
            raise said
        return said

    async def until_changed(self) -> None:
        await self.changed.wait()
        self.changed.clear()


@dataclass
class Changes:
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass
class Desk:
    told: "asyncio.Queue[Listing | str]" = field(default_factory=asyncio.Queue)
    failures: int = 0

    async def begin_listing(self) -> datetime:
        return NOON

    async def report_listing(
        self, _: SourceTable, listing: Listing, *, began_at: datetime
    ) -> SourceChanges:
        assert began_at == NOON
        if self.failures:
            self.failures -= 1
            raise DeskUnavailableError("down")
        await self.told.put(listing)
        return Changes()

    async def report_no_listing(self, _: SourceTable, error: str) -> None:
        await self.told.put(error)


async def test_a_platform_that_tells_of_a_change_is_listed_at_once() -> None:
    desk, stop = Desk(), asyncio.Event()
    cloud = Cloud(Listing(vms=()), Listing(vms=(WEB,)))

    running = asyncio.create_task(SourceReporter(SOURCE, cloud, desk).run(stop))
    first = await desk.told.get()
    cloud.changed.set()
    second = await desk.told.get()
    stop.set()
    await running

    assert (first, second) == (Listing(vms=()), Listing(vms=(WEB,)))


async def test_a_server_that_cannot_be_reached_is_told_by_the_next_listing() -> None:
    desk, stop = Desk(failures=2), asyncio.Event()
    cloud = Cloud(Listing(vms=(WEB,)))
    often = SourceTable(actuator="rack1", every=timedelta(seconds=5))
    reporter = SourceReporter(often, cloud, desk)

    running = asyncio.create_task(reporter.run(stop))
    while desk.told.empty():
        cloud.changed.set()
        await asyncio.sleep(0)
    told = desk.told.get_nowait()
    stop.set()
    await running

    assert told == Listing(vms=(WEB,))


async def test_the_fleet_of_a_server_follows_what_is_reported(anyio_backend: object) -> None:
    clock = VirtualClock(NOON, speed=0)
    silent = Listing(vms=(), silent={"hv-a": "no route to host"})
    cloud = Cloud(Listing(vms=(WEB,)), silent, DriverError("Keystone answered 503"))
    async with control_api(clock=clock, actuator_of=rack1) as control, served(control) as url:
        async with HttpDesk(Server(url=url), actuator="rack1", holder="hv:1") as desk:
            reporter = SourceReporter(SOURCE, cloud, desk)

            await reporter.report()
            vm = await control.get("/v1/vms/shop")
            await reporter.report()
            [partial] = (await control.get("/v1/sources"))["sources"]
            await reporter.report()
            [failed] = (await control.get("/v1/sources"))["sources"]
            metrics = (await control.http.get("/metrics")).text

        assert (vm["host"], vm["vm_id"], vm["address"]) == ("hv-a", WEB.vm_id, "10.9.0.1")
        assert vm["resource_group"] == "shops"
        assert partial["silent"] == {"hv-a": "no route to host"}
        assert (failed["error"], failed["vms"]) == ("Keystone answered 503", 1)
        assert (failed["holder"], failed["every"]) == ("hv:1", 60.0)
        assert 'forewarned_source_vms{source="rack1"} 1.0' in metrics
        assert 'forewarned_source_listing_age_seconds{source="rack1"} 0.0' in metrics
        assert (await control.http.delete("/v1/sources/rack1")).status_code == 409
        await clock.step(timedelta(minutes=2))
        assert (await control.http.delete("/v1/sources/rack1")).status_code == 200
        await control.get("/v1/vms/shop")
        assert (await control.get("/v1/sources"))["sources"] == []
