"""What happened: every change with who, from where, what, when and why; as a page and as files."""

from functools import partial
from typing import Final

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, mistakes
from forewarned.console.forms import FieldError, Form
from forewarned.control.http.history_files import ExportFormat, history_file
from forewarned.core import transitions
from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import EventId, ResourceName, ScopeId, parse_event_id
from forewarned.core.model import EventType
from forewarned.security.identities import Role
from forewarned.service.listings import HistoryFilter, HistoryRow

_PER_PAGE: Final = 100
_FILTERS: Final = ("vm", "scope", "event", "type", "action", "actor", "from", "to")
_ACTIONS: Final = {
    action: transitions.action_in_words(action)
    for action in sorted(
        {*transitions.ACTIONS, "declared", "withdrawn", "refused"}, key=transitions.action_in_words
    )
}


async def show_history(visit: Visit) -> Response:
    form = visit.query
    errors: dict[str, str] = {}
    rows: list[HistoryRow] = []
    try:
        wanted = _filter(form, limit=_PER_PAGE + 1)
        rows = await visit.ask(lambda snapshot: snapshot.history(wanted))
    except REFUSED as refusal:
        errors = mistakes(refusal, frozenset({*_FILTERS, "before"}))
    shown = rows[:_PER_PAGE]
    return visit.page(
        "history.html",
        form=form,
        errors=errors,
        rows=shown,
        older=shown[-1].id if len(rows) > _PER_PAGE else None,
        types=tuple(EventType),
        actions=_ACTIONS,
        filters={name: form.text(name) for name in _FILTERS if form.text(name)},
    )


async def export_csv(visit: Visit) -> Response:
    return await _file(visit, ExportFormat.CSV)


async def export_lines(visit: Visit) -> Response:
    return await _file(visit, ExportFormat.JSONL)


async def _file(visit: Visit, format: ExportFormat) -> Response:
    wanted = _filter(visit.query, limit=_PER_PAGE)
    may_go_on = partial(visit.is_still_admitted, Role.READER)
    return await history_file(
        visit.request, visit.services.engine, wanted, format, may_go_on=may_go_on
    )


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
