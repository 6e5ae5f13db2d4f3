"""Scale sets with the portal's own steps: instance termination, its notification, its delay."""

from datetime import timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.action_forms import MOST_INSTANCES, read_set_id
from forewarned.console.context import REFUSED, Console, mistakes, see
from forewarned.console.forms import Form, read_form
from forewarned.console.listings.sets import SetPage, address_of, behind, listed
from forewarned.console.preview import Preview
from forewarned.console.rendering import actor
from forewarned.core.notice import DEFAULT_TERMINATE, LONGEST_TERMINATE
from forewarned.service.azure import group_index, scale_sets
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.azure.models.scale_set import declared_set
from forewarned.service.azure.models.set_changes import ScaleSetChange
from forewarned.service.azure.resource_ids import SCALE_SETS, ResourceId
from forewarned.service.fleet.declaration import Orchestration
from forewarned.service.ports import Snapshot

_FIELDS: Final = frozenset(
    {"name", "group", "new_group", "capacity", "size", "mode", "spot", "notified", "delay"}
)
_MINUTE: Final = timedelta(minutes=1)
_DELAYS: Final = {"least": DEFAULT_TERMINATE // _MINUTE, "most": LONGEST_TERMINATE // _MINUTE}


async def list_sets(console: Console, request: Request) -> Response:
    services = console.services
    find = request.query_params.get("find", "").strip()
    after = request.query_params.get("after", "")

    def question(snapshot: Snapshot) -> SetPage:
        return listed(snapshot, services.subscription_id, find=find, after=after)

    page = await services.engine.ask(question)
    return console.page(request, "sets.html", page=page, find=find, after=after)


# --- creating ------------------------------------------------------------------------------------


async def show_new(console: Console, request: Request) -> Response:
    usual = [("capacity", "2"), ("mode", "Uniform"), ("notified", "on"), ("delay", "5")]
    return await _new(console, request, Form(usual))


async def send_new(console: Console, request: Request) -> Response:
    form = Form()
    try:
        form = await read_form(request)
        id_ = ResourceId(
            subscription=console.services.subscription_id,
            group=form.text("new_group") or form.required("group", "a resource group"),
            type=SCALE_SETS,
            name=form.required("name", "a name"),
        )
        change = ScaleSetChange(
            capacity=form.whole("capacity", least=0, most=MOST_INSTANCES),
            size=form.text("size") or None,
            orchestration=_orchestration(form),
            is_spot="spot" in form,
            is_notified=_is_notified(form),
            terminate_notice=_delay(form),
        )
        is_trial = form.text("step") == "preview"
        actions = console.services.rehearsed if is_trial else console.services.actions
        create = actions.create_set_and_group if form.text("new_group") else actions.create_set
        action = await create(id_, change, by=actor(request))
        if is_trial:
            return await _new(console, request, form, preview=console.preview(action))
    except REFUSED as refusal:
        return await _new(console, request, form, errors=mistakes(refusal, _FIELDS))
    return see(address_of(id_, done="saved"))


async def _new(
    console: Console,
    request: Request,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    preview: Preview | None = None,
) -> Response:
    subscription = console.services.subscription_id
    groups = await console.services.engine.ask(
        lambda snapshot: group_index.every(snapshot, subscription)
    )
    return console.page(
        request,
        "set_new.html",
        form=form,
        errors=errors,
        preview=preview,
        groups=[group.name for group in groups],
        delays=_DELAYS,
    )


# --- editing -------------------------------------------------------------------------------------


async def show_edit(console: Console, request: Request) -> Response:
    view = await _find(console, Form(request.query_params.multi_items()))
    return _edit(console, request, view, _as_it_is(view))


async def send_edit(console: Console, request: Request) -> Response:
    view = await _find(console, Form(request.query_params.multi_items()))
    form = await read_form(request)
    by = actor(request)
    if form.text("step") == "preview-upgrade":
        action = await console.services.rehearsed.upgrade_set(view.id, by=by)
        return _edit(console, request, view, _as_it_is(view), upgrade=console.preview(action))
    try:
        change = _edited(form)
        if form.text("step") == "preview":
            action = await console.services.rehearsed.change_set(view.id, change, by=by)
            return _edit(console, request, view, form, preview=console.preview(action))
        await console.services.actions.change_set(view.id, change, by=by)
    except REFUSED as refusal:
        return _edit(console, request, view, form, errors=mistakes(refusal, _FIELDS))
    return see(address_of(view.id, done="saved"))


async def upgrade(console: Console, request: Request) -> Response:
    """Bring instances to the latest model."""
    view = await _find(console, await read_form(request))
    await console.services.actions.upgrade_set(view.id, by=actor(request))
    return see(address_of(view.id, done="upgraded"))


def _edit(
    console: Console,
    request: Request,
    view: ScaleSetView,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    preview: Preview | None = None,
    upgrade: Preview | None = None,
) -> Response:
    return console.page(
        request,
        "set_edit.html",
        view=view,
        behind=behind(view),
        is_flexible=declared_set(view).orchestration is Orchestration.FLEXIBLE,
        form=form,
        errors=errors,
        preview=preview,
        upgrade=upgrade,
        delays=_DELAYS,
    )


async def _find(console: Console, form: Form) -> ScaleSetView:
    """Raises UnknownSetError."""
    id_ = read_set_id(form, "id")

    def question(snapshot: Snapshot) -> ScaleSetView:
        return scale_sets.find(snapshot, id_)

    return await console.services.engine.ask(question)


def _as_it_is(view: ScaleSetView) -> Form:
    notice = declared_set(view).model.terminate_notice
    shown = {
        "capacity": str(len(view.staying)),
        "notified": "off" if notice is None else "on",
        "delay": str((notice or DEFAULT_TERMINATE) // _MINUTE),
    }
    return Form([*shown.items(), *((f"was_{name}", value) for name, value in shown.items())])


def _edited(form: Form) -> ScaleSetChange:
    """What was changed since the form was shown: the rest may be another's work by now."""
    capacity = form.whole("capacity", least=0, most=MOST_INSTANCES)
    notice = _delay(form)
    is_termination_edited = _is_edited(form, "notified") or _is_edited(form, "delay")
    return ScaleSetChange(
        capacity=capacity if _is_edited(form, "capacity") else None,
        is_notified=_is_notified(form) if is_termination_edited else None,
        terminate_notice=notice if is_termination_edited else None,
    )


def _is_edited(form: Form, name: str) -> bool:
    return form.text(name) != form.text(f"was_{name}")


def _orchestration(form: Form) -> Orchestration:
    is_flexible = form.text("mode") == Orchestration.FLEXIBLE
    return Orchestration.FLEXIBLE if is_flexible else Orchestration.UNIFORM


def _is_notified(form: Form) -> bool:
    return form.text("notified") == "on"


def _delay(form: Form) -> timedelta | None:
    if not _is_notified(form):
        return None
    return form.minutes("delay", least=DEFAULT_TERMINATE, most=LONGEST_TERMINATE)
