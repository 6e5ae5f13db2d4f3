"""Tasks: what actuators do to the VMs of started events, and settling those that are stuck."""

from collections.abc import Awaitable
from typing import Final, Protocol
from urllib.parse import urlencode

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.console.forms import FieldError, Form
from forewarned.console.pages.events.event import read_event_id
from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import EventId, HostName, ResourceName, parse_event_id
from forewarned.core.model import Actor
from forewarned.core.tasks import Task, TaskState
from forewarned.service.listings import TaskFilter

_MOST: Final = 200
_FILTERS: Final = ("state", "host", "event", "actuator")


class TaskDecision(Protocol):
    def __call__(self, event_id: EventId, vm: ResourceName, *, by: Actor) -> Awaitable[object]: ...


async def list_tasks(visit: Visit) -> Response:
    return await _show(visit, visit.query)


async def retry(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.tasks.retry)


async def skip(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.tasks.skip)


async def _decide(visit: Visit, decision: TaskDecision) -> Response:
    event_id, vm = read_event_id(visit), ResourceName(visit.named("vm"))
    form = await visit.form()
    try:
        await decision(event_id, vm, by=visit.by)
    except REFUSED as refusal:
        return await _show(visit, form, mistakes(refusal, frozenset()))
    filters = urlencode(_given(form))
    return see(f"/tasks?{filters}" if filters else "/tasks")


async def _show(visit: Visit, form: Form, errors: dict[str, str] | None = None) -> Response:
    found: list[Task] = []
    errors = dict(errors or {})
    try:
        wanted = _filter(form)
        found = await visit.ask(lambda snapshot: snapshot.tasks(wanted))
    except REFUSED as refusal:
        errors |= mistakes(refusal, frozenset(_FILTERS))
    return visit.page(
        "tasks.html",
        form=form,
        errors=errors,
        tasks=found[:_MOST],
        has_more=len(found) > _MOST,
        states=tuple(TaskState),
        filters=_given(form),
    )


def _given(form: Form) -> dict[str, str]:
    return {name: form.text(name) for name in _FILTERS if form.text(name)}


def _filter(form: Form) -> TaskFilter:
    host = form.text("host")
    return TaskFilter(
        state=form.optional_choice("state", TaskState),
        host=HostName(host) if host else None,
        event_id=_event_id(form.text("event")),
        actuator=form.text("actuator") or None,
        limit=_MOST + 1,
    )


def _event_id(text: str) -> EventId | None:
    try:
        return parse_event_id(text) if text else None
    except InvalidIdError as error:
        raise FieldError(str(error), field="event") from None
