"""Canceling an event: what will happen is shown first, for it may end more than this one event."""

from typing import Final

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.console.forms import Form
from forewarned.console.pages.events.event import read_event_id, turns_to_come
from forewarned.console.preview import Preview
from forewarned.core.errors import UnknownEventError
from forewarned.core.model import EventStatus, Scope
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord

_FIELDS: Final = frozenset({"reason"})
_ANOTHER: Final = (
    "Nothing was canceled: the outcome has changed since the preview. Look again, then confirm"
)


async def show_cancel(visit: Visit) -> Response:
    return await _show(visit, Form())


async def send_cancel(visit: Visit) -> Response:
    event_id = read_event_id(visit)
    form = Form()
    try:
        form = await visit.form()
        reason = form.text("reason")
        preview = await _preview_of(visit, reason)
        if form.text("shown") != preview.fingerprint:
            errors = {"": _ANOTHER} if "shown" in form else {}
            return await _show(visit, form, errors)
        await visit.services.actions.scheduler.cancel(event_id, reason=reason, by=visit.by)
    except REFUSED as refusal:
        return await _show(visit, form, mistakes(refusal, _FIELDS))
    return see(f"/events/{event_id}")


async def _show(visit: Visit, form: Form, errors: dict[str, str] | None = None) -> Response:
    event_id = read_event_id(visit)

    def question(snapshot: Snapshot) -> tuple[EventRecord, Scope]:
        record = snapshot.event(event_id)
        if record is None:
            raise UnknownEventError(event_id)
        return record, snapshot.load(record.scope_id)

    record, scope = await visit.ask(question)
    preview, refusal = None, ""
    try:
        preview = await _preview_of(visit, "")
    except REFUSED as error:
        refusal = str(error)
    return visit.page(
        "cancel.html",
        record=record,
        event=record.event,
        turns=turns_to_come(scope, record.event),
        preview=preview,
        refusal=refusal,
        form=form,
        errors=errors,
    )


async def _preview_of(visit: Visit, reason: str) -> Preview:
    records = await visit.services.rehearsed.scheduler.cancel(
        read_event_id(visit), reason=reason, by=visit.by
    )
    return visit.preview([each for each in records if each.event.status is EventStatus.CANCELED])
