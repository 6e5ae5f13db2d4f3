"""The operations of drains."""

from collections.abc import Mapping

from forewarned.control.http.operations import Asked
from forewarned.control.v1.drains import requests, wire
from forewarned.control.v1.request_wire import Nothing
from forewarned.control.v1.services import Services
from forewarned.control.v1.wire import DrainList
from forewarned.core.ids import HostName, ResourceName


async def drain_host(
    services: Services, asked: Asked[requests.DrainHost, Nothing]
) -> wire.ShownDrain:
    """Move every VM of a host to other hosts, each with notice, or only plan it."""
    host, order = _host(asked.path), asked.body.order()
    return wire.shown(await services.use_cases.drains.begin(host, order, by=asked.by))


async def list_drains(services: Services, _: Asked[Nothing, Nothing]) -> DrainList:
    """The newest drain of each host that has had one."""
    found = await services.engine.ask(lambda snapshot: snapshot.drains())
    return DrainList(drains=tuple(map(wire.summary, found)))


async def show_drain(services: Services, asked: Asked[Nothing, Nothing]) -> wire.ShownDrain:
    """A host's newest drain, with what each of its VMs waits for."""
    return wire.shown(await services.use_cases.drains.show(_host(asked.path)))


async def undrain_host(
    services: Services, asked: Asked[Nothing, requests.UndrainQuery]
) -> wire.ShownDrain:
    """End a drain: cancel what has not begun, and allow VMs to be moved to the host."""
    drains, host = services.use_cases.drains, _host(asked.path)
    end = drains.bring_back if asked.query.returns else drains.end
    return wire.shown(await end(host, by=asked.by))


async def list_questions(
    services: Services, asked: Asked[Nothing, requests.QuestionsQuery]
) -> wire.Questions:
    """What drains need to know from an actuator, and which hosts no VM may be moved to now."""
    return wire.shown_questions(*await services.use_cases.drains.questions(asked.query.actuator))


async def answer_survey(
    services: Services, asked: Asked[requests.SurveyAnswer, Nothing]
) -> wire.ShownDrain:
    """Say whether a VM can be moved."""
    drains, host, body = services.use_cases.drains, _host(asked.path), asked.body
    view = await drains.answer_survey(
        host,
        ResourceName(body.vm),
        possible=body.possible,
        reason=body.reason,
        target=body.target,
        by=asked.by,
    )
    return wire.shown(view)


async def answer_listing(
    services: Services, asked: Asked[requests.HostListing, Nothing]
) -> wire.ShownDrain:
    """Say which VMs the platform has on a host."""
    drains, host = services.use_cases.drains, _host(asked.path)
    return wire.shown(await drains.answer_listing(host, asked.body.listing(), by=asked.by))


def _host(path: Mapping[str, str]) -> HostName:
    return HostName(path["host"])
