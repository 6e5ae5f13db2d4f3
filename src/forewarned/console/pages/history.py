"""What happened: every change with who, from where, what, when and why; as a page and as files."""

import csv
import io
import json
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.context import REFUSED, Console, mistakes
from forewarned.console.forms import FieldError, Form
from forewarned.console.rendering import iso
from forewarned.core import transitions
from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import EventId, ResourceName, ScopeId, parse_event_id
from forewarned.core.model import EventType
from forewarned.service.listings import HistoryFilter, HistoryRow

_PER_PAGE: Final = 100
_EXPORTED: Final = 10_000
_FILTERS: Final = ("vm", "scope", "event", "type", "action", "actor", "from", "to")
_ACTIONS: Final = tuple(sorted({*transitions.ACTIONS, "declared", "withdrawn", "refused"}))
_COLUMNS: Final = (
    "id",
    "at",
    "actor",
    "address",
    "action",
    "scope",
    "event_id",
    "event_type",
    "resources",
    "cause",
)
# What a spreadsheet would take for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


async def show_history(console: Console, request: Request) -> Response:
    form = Form(request.query_params.multi_items())
    errors: dict[str, str] = {}
    rows: list[HistoryRow] = []
    try:
        wanted = _filter(form, limit=_PER_PAGE + 1)
        rows = await console.services.engine.ask(lambda snapshot: snapshot.history(wanted))
    except REFUSED as refusal:
        errors = mistakes(refusal, frozenset({*_FILTERS, "before"}))
    shown = rows[:_PER_PAGE]
    return console.page(
        request,
        "history.html",
        form=form,
        errors=errors,
        rows=shown,
        older=shown[-1].id if len(rows) > _PER_PAGE else None,
        types=tuple(EventType),
        actions=_ACTIONS,
        most_exported=_EXPORTED,
        filters={name: form.text(name) for name in _FILTERS if form.text(name)},
    )


async def export_csv(console: Console, request: Request) -> Response:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS)
    writer.writeheader()
    for row in await _exported(console, request):
        shown = {**_plain(row), "resources": " ".join(row.resources)}
        writer.writerow({name: _harmless(value) for name, value in shown.items()})
    return _file(text.getvalue(), "text/csv; charset=utf-8", "history.csv")


async def export_json(console: Console, request: Request) -> Response:
    rows = [_plain(row) for row in await _exported(console, request)]
    text = json.dumps(rows, indent=1, ensure_ascii=False)
    return _file(text, "application/json", "history.json")


async def _exported(console: Console, request: Request) -> list[HistoryRow]:
    wanted = _filter(Form(request.query_params.multi_items()), limit=_EXPORTED)
    return await console.services.engine.ask(lambda snapshot: snapshot.history(wanted))


def _filter(form: Form, *, limit: int) -> HistoryFilter:
    vm, scope = form.text("vm"), form.text("scope")
    return HistoryFilter(
        resource=ResourceName(vm) if vm else None,
        scope_id=ScopeId(scope) if scope else None,
        event_id=_event_id(form),
        type=form.optional_choice("type", EventType),
        action=form.text("action") or None,
        actor=form.text("actor") or None,
        since=form.instant("from"),
        until=form.end_of("to"),
        before_id=form.whole("before", least=1, most=(1 << 63) - 1) if "before" in form else None,
        limit=limit,
    )


def _event_id(form: Form) -> EventId | None:
    text = form.text("event")
    try:
        return parse_event_id(text) if text else None
    except InvalidIdError as error:
        raise FieldError(str(error), field="event") from None


def _plain(row: HistoryRow) -> dict[str, object]:
    return {
        "id": row.id,
        "at": iso(row.at),
        "actor": row.actor,
        "address": row.address,
        "action": row.action,
        "scope": row.scope_id,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "resources": list(row.resources),
        "cause": row.cause,
    }


def _harmless(value: object) -> object:
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def _file(text: str, media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=media_type, headers=headers)
