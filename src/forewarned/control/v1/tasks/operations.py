"""The operations of `/v1/tasks`."""

from collections.abc import Mapping
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted
from forewarned.control.http.operations import MIB, Asked, json_response
from forewarned.control.v1.request_wire import Nothing
from forewarned.control.v1.services import Services
from forewarned.control.v1.tasks import requests, wire
from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import EventId, ResourceName, parse_event_id
from forewarned.core.tasks import LEASE
from forewarned.service.lifecycle.tasks import TaskRef


async def list_tasks(
    services: Services, asked: Asked[Nothing, requests.TasksQuery]
) -> wire.TaskList:
    """Tasks, those of the newest events first; by default only those of open events."""
    try:
        event_id = None if asked.query.event is None else parse_event_id(asked.query.event)
    except InvalidIdError as refusal:
        raise refusal.at("event") from None
    wanted = asked.query.filter(event_id)
    found = await services.engine.ask(lambda snapshot: snapshot.tasks(wanted))
    return wire.TaskList(tasks=tuple(map(wire.shown, found)))


async def claim_tasks(services: Services, request: Request, admitted: Admitted) -> Response:
    bodies.query(request, Nothing)
    asked = await bodies.body(request, requests.ClaimTasks, largest=MIB)
    found = await services.task_waits.until_found(
        partial(
            services.use_cases.tasks.claim,
            asked.actuator,
            holder=asked.holder,
            limit=asked.limit,
        ),
        seconds=min(asked.wait, requests.LONGEST_WAIT),
        is_gone=partial(_is_gone, request, admitted),
    )
    claimed = tuple(wire.claimed(claim, lease=LEASE) for claim in found)
    return json_response(wire.ClaimedTasks(tasks=claimed))


async def _is_gone(request: Request, admitted: Admitted) -> bool:
    """Whether the caller has disconnected, or is no longer admitted."""
    return await request.is_disconnected() or not await admitted.is_still_admitted()


async def renew_task(services: Services, asked: Asked[requests.Renew, Nothing]) -> wire.ShownTask:
    """Keep a claimed task for another 30 seconds."""
    ref, now = _ref(asked.path, asked.body.attempt), asked.body.seen()
    return wire.shown(await services.use_cases.tasks.renew(ref, now))


async def begin_task(services: Services, asked: Asked[requests.Begin, Nothing]) -> wire.ShownTask:
    """Report that the VM of a claimed task is interrupted from now on."""
    ref, before = _ref(asked.path, asked.body.attempt), asked.body.seen()
    return wire.shown(await services.use_cases.tasks.begin(ref, before, by=asked.by))


async def finish_task(services: Services, asked: Asked[requests.Finish, Nothing]) -> wire.ShownTask:
    """Report that a claimed task was carried out."""
    ref, after = _ref(asked.path, asked.body.attempt), asked.body.seen()
    return wire.shown(await services.use_cases.tasks.finish(ref, after, by=asked.by))


async def fail_task(services: Services, asked: Asked[requests.Fail, Nothing]) -> wire.ShownTask:
    """Report that a claimed task was not carried out, or that it is unknown whether it was."""
    ref, body = _ref(asked.path, asked.body.attempt), asked.body
    task = await services.use_cases.tasks.fail(ref, body.failure(), body.seen(), by=asked.by)
    return wire.shown(task)


async def retry_task(services: Services, asked: Asked[Nothing, Nothing]) -> wire.ShownTask:
    """Retry a task that is Stuck or Failed."""
    event_id, vm = _names(asked.path)
    return wire.shown(await services.use_cases.tasks.retry(event_id, vm, by=asked.by))


async def skip_task(services: Services, asked: Asked[Nothing, Nothing]) -> wire.ShownTask:
    """Count a task as done, whatever became of the VM."""
    event_id, vm = _names(asked.path)
    return wire.shown(await services.use_cases.tasks.skip(event_id, vm, by=asked.by))


def _ref(path: Mapping[str, str], attempt: int) -> TaskRef:
    return TaskRef(*_names(path), attempt)


def _names(path: Mapping[str, str]) -> tuple[EventId, ResourceName]:
    return parse_event_id(path["event_id"]), ResourceName(path["vm"])
