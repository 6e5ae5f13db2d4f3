"""`/v1`: every operation in one table, and the app that serves it.

No decision is made here: each operation calls a use case and shows what came of it.
"""

from functools import cache
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware

from forewarned.control.fleet.wire import WireFleet
from forewarned.control.http.guards import SameSite
from forewarned.control.http.history_files import CSV
from forewarned.control.http.operations import (
    Asked,
    Operation,
    create,
    delete,
    operation,
    read,
    routes,
    write,
)
from forewarned.control.http.progress import MEDIA_TYPE as LINES
from forewarned.control.v1 import errors, events, faults, fleet, openapi, server, wire
from forewarned.control.v1.drains import operations as drains
from forewarned.control.v1.history import operations as history
from forewarned.control.v1.metrics import CONTENT_TYPE
from forewarned.control.v1.request_wire import (
    ChangesQuery,
    EventQuery,
    ExportQuery,
    FleetQuery,
    Nothing,
)
from forewarned.control.v1.services import Services
from forewarned.control.v1.shared_changes import SharedChanges
from forewarned.control.v1.sources import operations as sources
from forewarned.control.v1.sources.requests import ReportListing
from forewarned.control.v1.sources.wire import SourceChanges
from forewarned.control.v1.subscriptions import operations as subscriptions
from forewarned.control.v1.tasks import operations as tasks
from forewarned.control.v1.tasks.requests import ClaimTasks
from forewarned.control.v1.tasks.wire import ClaimedTasks
from forewarned.security.identities import Role


def create_app(services: Services) -> Starlette:
    engine = services.engine
    if engine.is_shared:
        changes = SharedChanges(services.changes, engine)
        engine.tell_history(changes)
        engine.tell_history(services.waits)
        engine.tell_history(services.task_waits)
    else:
        engine.tell(services.changes.hear)
        engine.tell(services.waits.hear)
        engine.tell(services.task_waits.hear)
    app = Starlette(
        routes=routes(OPERATIONS, services),
        middleware=[
            Middleware(SameSite, allowed_hosts=services.allowed_hosts, refuse=errors.refusal)
        ],
        exception_handlers=errors.ANSWERS,
    )
    # A redirect would be an answer of another shape, and lose the body of a POST in some clients.
    app.router.redirect_slashes = False
    return app


async def describe_api(_: Services, __: Asked[Nothing, Nothing]) -> openapi.Json:
    """This description."""
    return description()


@cache
def description() -> openapi.Json:
    return openapi.describe(OPERATIONS)


OPERATIONS: Final[tuple[Operation, ...]] = (
    # --- events: in front, because the router looks through this table, and VMs wait for these
    create("/v1/events", events.schedule_events, needs=Role.MAINTAINER),
    read("/v1/events", events.list_events),
    Operation(
        method="GET",
        path="/v1/events/{event_id}",
        name="show_event",
        summary="One event; responds at once, or when the event is approved, started or completed",
        needs=Role.READER,
        answer=events.show_event,
        query=EventQuery,
        replies=(wire.Event,),
    ),
    read("/v1/events/{event_id}/explain", events.explain_event),
    write("/v1/events/{event_id}/approve", events.approve_event, needs=Role.APPROVER),
    write("/v1/events/{event_id}/cancel", events.cancel_event, needs=Role.MAINTAINER),
    write("/v1/events/{event_id}/complete", events.complete_event, needs=Role.MAINTAINER),
    # --- tasks
    read("/v1/tasks", tasks.list_tasks),
    Operation(
        method="POST",
        path="/v1/tasks/claim",
        name="claim_tasks",
        summary="Claim tasks of one actuator; if asked to, wait until there is one",
        needs=Role.ACTUATOR,
        answer=tasks.claim_tasks,
        body=ClaimTasks,
        replies=(ClaimedTasks,),
    ),
    write("/v1/tasks/{event_id}/{vm}/renew", tasks.renew_task, needs=Role.ACTUATOR),
    write("/v1/tasks/{event_id}/{vm}/begin", tasks.begin_task, needs=Role.ACTUATOR),
    write("/v1/tasks/{event_id}/{vm}/finish", tasks.finish_task, needs=Role.ACTUATOR),
    write("/v1/tasks/{event_id}/{vm}/fail", tasks.fail_task, needs=Role.ACTUATOR),
    write("/v1/tasks/{event_id}/{vm}/retry", tasks.retry_task, needs=Role.MAINTAINER),
    write("/v1/tasks/{event_id}/{vm}/skip", tasks.skip_task, needs=Role.MAINTAINER),
    # --- the server
    read("/v1/openapi.json", describe_api, takes_session=True),
    Operation(
        method="GET",
        path="/v1/health",
        name="show_health",
        summary="Whether the server is healthy; 503 with the same shape if its store is"
        " unavailable",
        needs=None,
        answer=server.show_health,
        replies=(wire.Health, wire.Status),
        down=(wire.Health, wire.Status),
    ),
    Operation(
        method="GET",
        path="/metrics",
        name="show_metrics",
        summary="Metrics for Prometheus",
        needs=Role.READER,
        answer=server.show_metrics,
        takes_session=True,
        replies=(str,),
        media_type=CONTENT_TYPE,
    ),
    read("/v1/endpoints", server.show_endpoints),
    read("/v1/nodes", server.list_nodes),
    read("/v1/settings", server.list_settings),
    write("/v1/reset", server.reset_emulator, needs=Role.ADMIN),
    # --- the fleet
    read("/v1/fleet", fleet.show_fleet),
    Operation(
        method="PUT",
        path="/v1/fleet",
        name="apply_fleet",
        summary="Change the fleet to match a plan, written as in the fleet file",
        needs=Role.ADMIN,
        answer=fleet.apply_fleet,
        body=WireFleet,
        query=FleetQuery,
        replies=(wire.FleetApplied,),
        lines=(wire.Progress, wire.FleetApplied, wire.Refusal),
    ),
    read("/v1/scopes", fleet.list_scopes),
    create("/v1/scopes/{scope:path}/maintain", events.maintain_scope, needs=Role.MAINTAINER),
    read("/v1/scopes/{scope:path}", fleet.show_scope),
    read("/v1/vms/{name}", fleet.show_vm),
    # --- hosts
    read("/v1/hosts", fleet.list_hosts),
    read("/v1/drains", drains.list_drains),
    read("/v1/hosts/{host}/rules", fleet.show_host_rules),
    create("/v1/hosts/{host}/drain", drains.drain_host, needs=Role.MAINTAINER),
    read("/v1/hosts/{host}/drain", drains.show_drain),
    delete("/v1/hosts/{host}/drain", drains.undrain_host, needs=Role.MAINTAINER),
    write("/v1/hosts/{host}/drain/survey", drains.answer_survey, needs=Role.ACTUATOR),
    write("/v1/hosts/{host}/drain/listing", drains.answer_listing, needs=Role.ACTUATOR),
    operation("GET", "/v1/drain-questions", drains.list_questions, needs=Role.ACTUATOR),
    create("/v1/hosts/{host}/fail", events.fail_host, needs=Role.MAINTAINER),
    create("/v1/hosts/{host}/predict", events.predict_failure, needs=Role.MAINTAINER),
    create("/v1/hosts/{host}/maintain", events.maintain_host, needs=Role.MAINTAINER),
    # --- platforms that the fleet is kept in step with
    read("/v1/sources", sources.list_sources),
    operation("GET", "/v1/sources/{name}/listing", sources.begin_listing, needs=Role.ACTUATOR),
    Operation(
        method="POST",
        path="/v1/sources/{name}/listing",
        name="report_listing",
        summary="Report which VMs a platform has, or why it can't be listed",
        needs=Role.ACTUATOR,
        answer=sources.report_listing,
        body=ReportListing,
        replies=(SourceChanges,),
    ),
    delete("/v1/sources/{name}", sources.forget_source, needs=Role.ADMIN),
    # --- who else is told
    create("/v1/subscriptions", subscriptions.add_subscription, needs=Role.ADMIN),
    read("/v1/subscriptions", subscriptions.list_subscriptions),
    read("/v1/subscriptions/{name}", subscriptions.show_subscription),
    operation(
        "PATCH", "/v1/subscriptions/{name}", subscriptions.change_subscription, needs=Role.ADMIN
    ),
    delete("/v1/subscriptions/{name}", subscriptions.remove_subscription, needs=Role.ADMIN),
    read("/v1/subscriptions/{name}/deliveries", subscriptions.list_deliveries),
    write("/v1/subscriptions/{name}/test", subscriptions.test_subscription, needs=Role.MAINTAINER),
    write(
        "/v1/subscriptions/{name}/pause", subscriptions.pause_subscription, needs=Role.MAINTAINER
    ),
    write(
        "/v1/subscriptions/{name}/resume", subscriptions.resume_subscription, needs=Role.MAINTAINER
    ),
    write("/v1/subscriptions/{name}/redeliver", subscriptions.redeliver, needs=Role.MAINTAINER),
    write("/v1/subscriptions/{name}/rotate", subscriptions.rotate_secret, needs=Role.ADMIN),
    # --- what happened, and what happens
    read("/v1/history", history.list_history),
    Operation(
        method="GET",
        path="/v1/history/export",
        name="export_history",
        summary="All of history, or the rows that match the filters, oldest first: as lines of"
        " JSON, or as CSV (`text/csv`)",
        needs=Role.READER,
        answer=history.export_history,
        query=ExportQuery,
        replies=(wire.HistoryRow,),
        media_type=LINES,
        text_types=(CSV,),
    ),
    Operation(
        method="GET",
        path="/v1/changes",
        name="watch_changes",
        summary="Server-sent events: `hello` with what is open, then one for each transition;"
        " resumes after the header `Last-Event-ID`, if it is given",
        needs=Role.READER,
        answer=history.watch_changes,
        query=ChangesQuery,
        takes_session=True,
        replies=(wire.Hello, wire.Change, wire.Farewell),
        media_type="text/event-stream",
    ),
    # --- what is to go wrong
    create("/v1/faults", faults.add_fault, needs=Role.ADMIN),
    read("/v1/faults", faults.list_faults),
    delete("/v1/faults", faults.clear_faults, needs=Role.ADMIN),
    delete("/v1/faults/{fault_id}", faults.remove_fault, needs=Role.ADMIN),
    Operation(
        method="GET",
        path="/v1/requests",
        name="watch_requests",
        summary="Server-sent events: `hello`, then one for each request of a VM; emulators only",
        needs=Role.READER,
        answer=faults.watch_requests,
        replies=(wire.RequestsHello, wire.SeenRequest, wire.Farewell),
        media_type="text/event-stream",
    ),
    # --- time
    read("/v1/clock", server.show_clock, takes_session=True),
    write("/v1/clock/pause", server.pause_clock, needs=Role.ADMIN),
    write("/v1/clock/resume", server.resume_clock, needs=Role.ADMIN),
    write("/v1/clock/speed", server.set_clock_speed, needs=Role.ADMIN),
    write("/v1/clock/step", server.step_clock, needs=Role.ADMIN),
)
