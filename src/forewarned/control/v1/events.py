"""Events: causing them, calling them off, looking at them."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted
from forewarned.control.http.operations import Asked, json_response
from forewarned.control.v1 import views, wire
from forewarned.control.v1.request_wire import (
    Cancel,
    EventQuery,
    EventsQuery,
    Maintain,
    Nothing,
    Schedule,
)
from forewarned.control.v1.services import Services
from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId, HostName, ScopeId, parse_event_id
from forewarned.security.identities import InvalidTokenError
from forewarned.service.records import EventRecord


async def schedule_events(services: Services, asked: Asked[Schedule, Nothing]) -> wire.Events:
    """Schedule one event for each scope the VMs are in; for Terminate, one for each VM."""
    records = await services.use_cases.scheduler.schedule(asked.body.order(), by=asked.by)
    return views.events(records)


async def list_events(services: Services, asked: Asked[Nothing, EventsQuery]) -> wire.Events:
    """Events, oldest first; by default only open ones."""
    wanted = asked.query.filter()
    return views.events(await services.engine.ask(lambda snapshot: snapshot.events(wanted)))


async def show_event(services: Services, request: Request, admitted: Admitted) -> Response:
    query = bodies.query(request, EventQuery)
    limit = query.limit()
    event_id = parse_event_id(request.path_params["event_id"])
    if query.wait is None:
        return json_response(views.event(await _record(services, event_id)))
    record = await services.waits.until(
        query.wait, event_id, partial(_record, services, event_id), timeout=limit
    )
    if not await admitted.is_still_admitted():
        raise InvalidTokenError("the token was revoked or has expired while the request waited")
    return json_response(views.event(record))


async def explain_event(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Explained:
    """Why an event is where it is, what it is waiting for, what comes next."""
    return views.explained(await services.use_cases.explainer.explain(_event_id(asked)))


async def approve_event(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Event:
    """Let an event start before its NotBefore; changes nothing if it is approved or has started."""
    event_id = _event_id(asked)
    await services.use_cases.approvals.approve_from_outside(event_id, by=asked.by)
    return views.event(await _record(services, event_id))


async def cancel_event(services: Services, asked: Asked[Cancel, Nothing]) -> wire.Events:
    """Cancel an event, and all of the maintenance it belongs to."""
    records = await services.use_cases.scheduler.cancel(
        _event_id(asked), reason=asked.body.reason, by=asked.by
    )
    return views.events(records)


async def complete_event(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Event:
    """Report that the work of a Started event is done, which completes the event."""
    return views.event(
        await services.use_cases.actuation.complete_by_hand(_event_id(asked), by=asked.by)
    )


async def fail_host(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Events:
    """Fail a host: creates events that have already started."""
    host = HostName(asked.path["host"])
    return views.events(await services.use_cases.scheduler.fail_host(host, by=asked.by))


async def predict_failure(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Events:
    """Predict a host's failure, days ahead: a Redeploy for each VM."""
    host = HostName(asked.path["host"])
    return views.events(await services.use_cases.scheduler.predict_failure(host, by=asked.by))


async def maintain_host(services: Services, asked: Asked[Maintain, Nothing]) -> wire.Events:
    """Maintain a host: one event for each scope, which start together."""
    host = HostName(asked.path["host"])
    records = await services.use_cases.scheduler.maintain_host(
        host, asked.body.order(), by=asked.by
    )
    return views.events(records)


async def maintain_scope(services: Services, asked: Asked[Maintain, Nothing]) -> wire.Events:
    """Maintain a set, one update domain at a time; returns the event of the first."""
    scope_id = ScopeId(asked.path["scope"])
    records = await services.use_cases.scheduler.maintain_set(
        scope_id, asked.body.order(), by=asked.by
    )
    return views.events(records)


def _event_id(asked: Asked[Nothing, Nothing] | Asked[Cancel, Nothing]) -> EventId:
    return parse_event_id(asked.path["event_id"])


async def _record(services: Services, event_id: EventId) -> EventRecord:
    record = await services.engine.ask(lambda snapshot: snapshot.event(event_id))
    if record is None:
        raise UnknownEventError(event_id)
    return record
