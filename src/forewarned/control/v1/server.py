"""The server itself: whether it is well, how it is set up, and its clock."""

from collections import Counter
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from forewarned import __version__
from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted, is_shown_all
from forewarned.control.http.errors import BadRequestError
from forewarned.control.http.operations import Asked, json_response
from forewarned.control.v1 import views, wire
from forewarned.control.v1.metrics import CONTENT_TYPE
from forewarned.control.v1.request_wire import Nothing, Speed, Step
from forewarned.control.v1.services import Services
from forewarned.service.errors import BadStepError, StoreUnavailableError
from forewarned.service.nodes import STALE_AFTER


async def show_health(services: Services, request: Request, _: Admitted) -> Response:
    """Asks the store something small: a server that can't read it is of no use.

    Probes have no token, so strangers are answered too, with no more than what a probe needs.
    """
    bodies.query(request, Nothing)
    shows_all = await is_shown_all(services, request)
    word: wire.Wellbeing = "ok"
    found = None
    try:
        await services.engine.ask(lambda snapshot: snapshot.next_wake())
        found = await services.nodes.show() if shows_all else None
    except StoreUnavailableError:
        word = "store_unavailable"
    if services.engine.lag >= STALE_AFTER:
        # VMs that come here for the first time are turned away, so none should be sent here.
        word = "store_unavailable"
    status = HTTPStatus.OK if word == "ok" else HTTPStatus.SERVICE_UNAVAILABLE
    if not shows_all:
        return json_response(wire.Status(status=word), status)
    health = wire.Health(
        status=word,
        mode=services.mode,
        version=__version__,
        metadata=services.metadata_url,
        clock=views.clock(services.use_cases.clock_control.show()),
        store=None if found is None else views.store(found),
    )
    return json_response(health, status)


async def list_nodes(services: Services, _: Asked[Nothing, Nothing]) -> wire.Nodes:
    """The servers that share the store, and whether they keep up with it."""
    return views.nodes(await services.nodes.show())


async def show_metrics(services: Services, request: Request, _: Admitted) -> Response:
    bodies.query(request, Nothing)
    census, tasks, drains = await services.engine.ask(
        lambda s: (s.census(), s.task_counts(), s.drains())
    )
    services.metrics.add(services.take_counts())
    services.metrics.certificate_expires(services.certificate_expires_at())
    services.metrics.add_nodes(await services.nodes.show(), services.nodes.commit_counts)
    kept = services.use_cases.history
    services.metrics.add_history(chained=kept.chained, removed=kept.removed)
    now = services.use_cases.clock_control.show().now
    services.metrics.add_sources(await services.use_cases.sources.show(), now=now)
    views = await services.use_cases.subscriptions.show_all()
    services.metrics.add_subscriptions({each.subscription.name: each.health for each in views})
    text = services.metrics.render(
        events=census.events,
        tasks=tasks,
        drains=Counter(drain.state for drain in drains),
        scopes=census.scopes,
        now=now,
        lag=services.engine.lag,
    )
    return Response(text, media_type=CONTENT_TYPE)


async def list_settings(services: Services, _: Asked[Nothing, Nothing]) -> list[wire.Setting]:
    """Every setting, its value and where the value comes from."""
    return [
        wire.Setting(name=name, value=value, origin=origin)
        for name, value, origin in services.settings_listing
    ]


async def show_endpoints(services: Services, _: Asked[Nothing, Nothing]) -> wire.Endpoints:
    """Where VMs, az and the Azure SDKs reach the server."""
    return wire.Endpoints(
        metadata=services.metadata_url,
        arm=services.arm_url,
        ca=services.ca_file,
        data=services.data_folder,
    )


async def reset_emulator(services: Services, asked: Asked[Nothing, Nothing]) -> wire.ResetDone:
    """Reset an emulator to its state at startup: fleet, events, faults and the clock's speed."""
    return views.reset_done(await services.reset.reset(by=asked.by))


async def show_clock(services: Services, _: Asked[Nothing, Nothing]) -> wire.Clock:
    """The server's clock."""
    return views.clock(services.use_cases.clock_control.show())


async def pause_clock(services: Services, _: Asked[Nothing, Nothing]) -> wire.Clock:
    """Stop the clock."""
    return views.clock(await services.use_cases.clock_control.pause())


async def resume_clock(services: Services, _: Asked[Nothing, Nothing]) -> wire.Clock:
    """Let the clock run again, as fast as before the pause."""
    return views.clock(await services.use_cases.clock_control.resume())


async def set_clock_speed(services: Services, asked: Asked[Speed, Nothing]) -> wire.Clock:
    """Let the clock run at a multiple of real time."""
    return views.clock(await services.use_cases.clock_control.run(asked.body.speed))


async def step_clock(services: Services, asked: Asked[Step, Nothing]) -> wire.Clock:
    """Move the clock forward; what falls due on the way happens, in order, before the response."""
    by, to = asked.body.by, asked.body.to
    if by is not None and to is None:
        return views.clock(await services.use_cases.clock_control.step(by.length))
    if to is None or by is not None:
        raise BadRequestError("give either 'by' or 'to', and not both", field="by")
    length = to - services.use_cases.clock_control.show().now
    try:
        return views.clock(await services.use_cases.clock_control.step(length))
    except BadStepError as refusal:
        raise refusal.at("to") from None
