"""What is to go wrong between VMs and an emulator, and what VMs ask of it meanwhile."""

from contextlib import ExitStack

from starlette.requests import Request
from starlette.responses import Response

from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted
from forewarned.control.http.operations import Asked
from forewarned.control.v1 import views, wire
from forewarned.control.v1.changes import ChangeStream, message
from forewarned.control.v1.request_wire import AddFault, Nothing
from forewarned.control.v1.services import Services
from forewarned.core.errors import UnknownResourceError
from forewarned.service.requests.watch import SeenRequest


async def add_fault(services: Services, asked: Asked[AddFault, Nothing]) -> wire.Fault:
    """Add a fault: make the emulator misbehave towards VMs."""
    fault = asked.body.fault()
    name = fault.vm
    # A fault for a misspelt VM would never happen, and no one would know why.
    if name is not None and await services.engine.ask(lambda s: s.binding(name)) is None:
        raise UnknownResourceError(name).at("vm")
    return views.fault(services.use_cases.faults.add(fault))


async def list_faults(services: Services, _: Asked[Nothing, Nothing]) -> wire.Faults:
    """Faults, oldest first."""
    return views.faults(services.use_cases.faults.show())


async def clear_faults(services: Services, _: Asked[Nothing, Nothing]) -> wire.Faults:
    """Remove every fault."""
    return views.faults(services.use_cases.faults.clear())


async def remove_fault(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Fault:
    """Remove a fault."""
    return views.fault(services.use_cases.faults.remove(asked.path["fault_id"]))


async def watch_requests(services: Services, request: Request, admitted: Admitted) -> Response:
    bodies.query(request, Nothing)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    streams, clock = services.request_streams, services.use_cases.clock_control
    with ExitStack() as place:
        watcher = place.enter_context(streams.watch())

        def hear(seen: SeenRequest) -> None:
            shown = views.seen_request(seen, at=clock.show().now)
            streams.offer(watcher, message("request", shown))

        place.enter_context(services.use_cases.requests.heard_by(hear))
        return ChangeStream(
            message("hello", wire.RequestsHello(now=clock.show().now)),
            watcher.messages(streams.beat),
            place=place.pop_all(),
            may_go_on=admitted.is_still_admitted,
        )
