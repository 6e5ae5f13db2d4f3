"""`/v1`: every operation in one table, and the app that serves it.

No decision is made here: each operation calls a use case and shows what came of it.
"""

from functools import cache
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware

from forewarned.control.fleet.wire import WireFleet
from forewarned.control.http import errors
from forewarned.control.http.guards import SameSite
from forewarned.control.http.operations import (
    Asked,
    Operation,
    delete,
    operation,
    read,
    routes,
    write,
)
from forewarned.control.v1 import events, faults, fleet, openapi, server, wire
from forewarned.control.v1.metrics import CONTENT_TYPE
from forewarned.control.v1.request_wire import (
    AddFault,
    Cancel,
    EventQuery,
    EventsQuery,
    FleetQuery,
    HistoryQuery,
    Maintain,
    Nothing,
    Schedule,
    Speed,
    Step,
)
from forewarned.control.v1.services import Services
from forewarned.security.identities import Role


def create_app(services: Services) -> Starlette:
    services.engine.tell(services.changes.hear)
    services.engine.tell(services.waits.hear)
    app = Starlette(
        routes=routes(OPERATIONS, services),
        middleware=[Middleware(SameSite, allowed_hosts=services.allowed_hosts)],
        exception_handlers=errors.ANSWERS,
    )
    # A redirect would be an answer of another shape, and lose the body of a POST in some clients.
    app.router.redirect_slashes = False
    return app


async def describe_api(_: Services, __: Asked[Nothing, Nothing]) -> openapi.Json:
    return description()


@cache
def description() -> openapi.Json:
    return openapi.describe(OPERATIONS)


CREATED: Final = HTTPStatus.CREATED

OPERATIONS: Final[tuple[Operation, ...]] = (
    # --- events: in front, because the router looks through this table, and VMs wait for these
    write(
        "/v1/events",
        events.schedule_events,
        "Schedule one event for each scope the VMs are in; a Terminate for each VM",
        needs=Role.MAINTAINER,
        body=Schedule,
        reply=wire.Events,
        status=CREATED,
    ),
    operation(
        "GET",
        "/v1/events",
        events.list_events,
        "Events, oldest first; those that are open unless asked otherwise",
        needs=Role.READER,
        body=Nothing,
        query=EventsQuery,
        reply=wire.Events,
    ),
    Operation(
        method="GET",
        path="/v1/events/{event_id}",
        name="show_event",
        summary="One event; at once, or once it is approved, started or completed",
        needs=Role.READER,
        answer=events.show_event,
        query=EventQuery,
        replies=(wire.Event,),
    ),
    read(
        "/v1/events/{event_id}/explain",
        events.explain_event,
        "Why an event is where it is, what it waits for, what comes next",
        reply=wire.Explained,
    ),
    write(
        "/v1/events/{event_id}/approve",
        events.approve_event,
        "Let an event start ahead of its NotBefore; again, or once started, changes nothing",
        needs=Role.APPROVER,
        body=Nothing,
        reply=wire.Event,
    ),
    write(
        "/v1/events/{event_id}/cancel",
        events.cancel_event,
        "Call an event off, with all the maintenance it is a part of",
        needs=Role.MAINTAINER,
        body=Cancel,
        reply=wire.Events,
    ),
    write(
        "/v1/events/{event_id}/complete",
        events.complete_event,
        "Say that the work of a Started event is done, so that the event completes",
        needs=Role.MAINTAINER,
        body=Nothing,
        reply=wire.Event,
    ),
    # --- the server
    read(
        "/v1/openapi.json", describe_api, "This description", reply=openapi.Json, takes_session=True
    ),
    Operation(
        method="GET",
        path="/v1/health",
        name="show_health",
        summary="Whether the server is well; 503 with the same shape where its store is not",
        needs=None,
        answer=server.show_health,
        replies=(wire.Health, wire.Status),
        down=(wire.Health, wire.Status),
    ),
    Operation(
        method="GET",
        path="/metrics",
        name="show_metrics",
        summary="Figures about the service, as Prometheus reads them",
        needs=Role.READER,
        answer=server.show_metrics,
        takes_session=True,
        replies=(str,),
        media_type=CONTENT_TYPE,
    ),
    read(
        "/v1/endpoints",
        server.show_endpoints,
        "Where VMs, az and the Azure SDKs reach the server",
        reply=wire.Endpoints,
    ),
    read(
        "/v1/settings",
        server.list_settings,
        "Every setting, its value and where that came from",
        reply=list[wire.Setting],
    ),
    write(
        "/v1/reset",
        server.reset_emulator,
        "Put an emulator back to how it started: fleet, events, faults and the clock's speed",
        needs=Role.ADMIN,
        body=Nothing,
        reply=wire.ResetDone,
    ),
    # --- the fleet
    read("/v1/fleet", fleet.show_fleet, "All scopes with their VMs", reply=wire.Scopes),
    Operation(
        method="PUT",
        path="/v1/fleet",
        name="apply_fleet",
        summary="Bring the fleet to a plan, written as in the fleet file",
        needs=Role.ADMIN,
        answer=fleet.apply_fleet,
        body=WireFleet,
        query=FleetQuery,
        replies=(wire.FleetApplied,),
        lines=(wire.Progress, wire.FleetApplied, wire.Refusal),
    ),
    read("/v1/scopes", fleet.list_scopes, "All scopes with their VMs", reply=wire.Scopes),
    write(
        "/v1/scopes/{scope:path}/maintain",
        events.maintain_scope,
        "Maintain a set, one update domain at a time; answers with the first one's event",
        needs=Role.MAINTAINER,
        body=Maintain,
        reply=wire.Events,
        status=CREATED,
    ),
    read("/v1/scopes/{scope:path}", fleet.show_scope, "One scope", reply=wire.Scope),
    read("/v1/vms/{name}", fleet.show_vm, "One VM", reply=wire.Vm),
    # --- hosts
    read("/v1/hosts", fleet.list_hosts, "Hosts and their VMs", reply=list[wire.Host]),
    write(
        "/v1/hosts/{host}/fail",
        events.fail_host,
        "Break a host: events that have started already",
        needs=Role.MAINTAINER,
        body=Nothing,
        reply=wire.Events,
        status=CREATED,
    ),
    write(
        "/v1/hosts/{host}/predict",
        events.predict_failure,
        "Predict a host's failure, days ahead: a Redeploy for each VM",
        needs=Role.MAINTAINER,
        body=Nothing,
        reply=wire.Events,
        status=CREATED,
    ),
    write(
        "/v1/hosts/{host}/maintain",
        events.maintain_host,
        "Maintain a host: one event for each scope, which start together",
        needs=Role.MAINTAINER,
        body=Maintain,
        reply=wire.Events,
        status=CREATED,
    ),
    # --- what happened, and what happens
    operation(
        "GET",
        "/v1/history",
        events.list_history,
        "Every change: who, from where, what, when, why; newest first",
        needs=Role.READER,
        body=Nothing,
        query=HistoryQuery,
        reply=wire.History,
    ),
    Operation(
        method="GET",
        path="/v1/changes",
        name="watch_changes",
        summary="Server-sent events: `hello` with what is open, then one for each transition",
        needs=Role.READER,
        answer=events.watch_changes,
        takes_session=True,
        replies=(wire.Hello, wire.Change, wire.Farewell),
        media_type="text/event-stream",
    ),
    # --- what is to go wrong
    write(
        "/v1/faults",
        faults.add_fault,
        "Make something go wrong between VMs and the emulator",
        needs=Role.ADMIN,
        body=AddFault,
        reply=wire.Fault,
        status=CREATED,
    ),
    read("/v1/faults", faults.list_faults, "Faults, oldest first", reply=wire.Faults),
    delete(
        "/v1/faults",
        faults.clear_faults,
        "Remove every fault",
        needs=Role.ADMIN,
        reply=wire.Faults,
    ),
    delete(
        "/v1/faults/{fault_id}",
        faults.remove_fault,
        "Remove a fault",
        needs=Role.ADMIN,
        reply=wire.Fault,
    ),
    # --- time
    read(
        "/v1/clock",
        server.show_clock,
        "The server's clock",
        reply=wire.Clock,
        takes_session=True,
    ),
    write(
        "/v1/clock/pause",
        server.pause_clock,
        "Let time stand still",
        needs=Role.ADMIN,
        body=Nothing,
        reply=wire.Clock,
    ),
    write(
        "/v1/clock/resume",
        server.resume_clock,
        "Go on as fast as before the pause",
        needs=Role.ADMIN,
        body=Nothing,
        reply=wire.Clock,
    ),
    write(
        "/v1/clock/speed",
        server.set_clock_speed,
        "Run at a speed against real time",
        needs=Role.ADMIN,
        body=Speed,
        reply=wire.Clock,
    ),
    write(
        "/v1/clock/step",
        server.step_clock,
        "Move forward; what falls due on the way happens, in order, before the answer",
        needs=Role.ADMIN,
        body=Step,
        reply=wire.Clock,
    ),
)
