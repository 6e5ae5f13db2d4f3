"""Canceling an event: what will happen is shown first, for it may end more than this one event."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.context import REFUSED, Console, mistakes, see
from forewarned.console.forms import Form, read_form
from forewarned.console.pages.events import read_event_id
from forewarned.console.preview import Preview
from forewarned.console.rendering import actor
from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId
from forewarned.core.model import EventStatus, Scope
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord

_FIELDS: Final = frozenset({"reason"})
_ANOTHER: Final = (
    "Nothing was canceled: the outcome has changed since the preview. Look again, then confirm"
)


async def show_cancel(console: Console, request: Request) -> Response:
    return await _show(console, request, Form())


async def send_cancel(console: Console, request: Request) -> Response:
    event_id = read_event_id(request)
    form = Form()
    try:
        form = await read_form(request)
        reason = form.text("reason")
        preview = await _preview_of(console, request, event_id, reason)
        if form.text("shown") != preview.fingerprint:
            errors = {"": _ANOTHER} if "shown" in form else {}
            return await _show(console, request, form, errors)
        await console.services.actions.scheduler.cancel(event_id, reason=reason, by=actor(request))
    except REFUSED as refusal:
        return await _show(console, request, form, mistakes(refusal, _FIELDS))
    return see(f"/events/{event_id}")


async def _show(
    console: Console, request: Request, form: Form, errors: dict[str, str] | None = None
) -> Response:
    event_id = read_event_id(request)
    record, scope = await console.services.engine.ask(lambda s: _look(s, event_id))
    preview, refusal = None, ""
    try:
        preview = await _preview_of(console, request, event_id, "")
    except REFUSED as error:
        refusal = str(error)
    return console.page(
        request,
        "cancel.html",
        record=record,
        event=record.event,
        turns=_turns(scope, record),
        preview=preview,
        refusal=refusal,
        form=form,
        errors=errors,
    )


def _look(snapshot: Snapshot, event_id: EventId) -> tuple[EventRecord, Scope]:
    record = snapshot.event(event_id)
    if record is None:
        raise UnknownEventError(event_id)
    return record, snapshot.load(record.scope_id)


async def _preview_of(
    console: Console, request: Request, event_id: EventId, reason: str
) -> Preview:
    records = await console.services.rehearsed.scheduler.cancel(
        event_id, reason=reason, by=actor(request)
    )
    canceled = [each for each in records if each.event.status is EventStatus.CANCELED]
    return console.preview(canceled)


def _turns(scope: Scope, record: EventRecord) -> tuple[int, ...]:
    """Update domains that the event's maintenance has not come to yet, and then never will."""
    rounds = scope.rounds
    if rounds is None or rounds.id != record.event.maintenance:
        return ()
    return tuple(turn.update_domain for turn in rounds.remaining)
