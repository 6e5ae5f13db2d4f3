"""The operations of `/v1/sources`."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted
from forewarned.control.http.operations import MIB, Asked, json_response
from forewarned.control.v1.request_wire import Nothing
from forewarned.control.v1.services import Services
from forewarned.control.v1.sources import wire
from forewarned.control.v1.sources.requests import ReportListing

LARGEST_LISTING: Final = 64 * MIB


async def list_sources(services: Services, _: Asked[Nothing, Nothing]) -> wire.SourceList:
    """Platforms that the fleet is kept in step with, and how their last listings went."""
    found = await services.use_cases.sources.show()
    return wire.SourceList(sources=tuple(map(wire.shown, found)))


async def begin_listing(services: Services, _: Asked[Nothing, Nothing]) -> wire.ListingBegins:
    """The server's time, for an actuator that is about to list its platform."""
    return wire.ListingBegins(began_at=await services.use_cases.sources.begin())


async def report_listing(services: Services, request: Request, admitted: Admitted) -> Response:
    bodies.query(request, Nothing)
    asked = await bodies.body(request, ReportListing, largest=LARGEST_LISTING)
    report = asked.report(request.path_params["name"])
    written = await services.use_cases.sources.take(report, by=admitted.by)
    return json_response(wire.changes(written))


async def forget_source(services: Services, asked: Asked[Nothing, Nothing]) -> wire.ShownSource:
    """Forget a source that no longer reports. Its VMs stay in the fleet, like any others."""
    state = await services.use_cases.sources.forget(asked.path["name"], by=asked.by)
    return wire.shown(state)
