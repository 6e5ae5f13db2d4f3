"""Scale sets with the portal's own steps: instance termination, its notification, its delay."""

from datetime import timedelta
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from forewarned.console.action_forms import MOST_INSTANCES, read_set_id
from forewarned.console.actions import (
    Actions,
    SetAction,
    change_set,
    create_set,
    create_set_and_group,
    upgrade_set,
)
from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.console.forms import Form
from forewarned.console.preview import Preview
from forewarned.core.notice import DEFAULT_TERMINATE, LONGEST_TERMINATE
from forewarned.service.azure import group_index, inventory, scale_sets
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.azure.models.scale_set import UpgradeMode, declared_set
from forewarned.service.azure.models.set_changes import ScaleSetChange
from forewarned.service.azure.resource_ids import SCALE_SETS, ResourceId
from forewarned.service.fleet.declaration import Orchestration
from forewarned.service.ports import Snapshot

_PER_PAGE: Final = 25
"""A list is live: with many sets, each change of one would have the whole fleet looked through."""
_FIELDS: Final = frozenset(
    {"name", "group", "new_group", "capacity", "size", "mode", "spot", "notified", "delay"}
)
_MINUTE: Final = timedelta(minutes=1)
_DELAYS: Final = {"least": DEFAULT_TERMINATE // _MINUTE, "most": LONGEST_TERMINATE // _MINUTE}


class SetRow(NamedTuple):
    view: ScaleSetView
    behind: int
    """Instances on an older model than the set's latest."""
    is_flexible: bool


class SetPage(NamedTuple):
    sets: list[SetRow]
    has_more: bool


async def list_sets(visit: Visit) -> Response:
    find, after = visit.find, visit.query.text("after")
    page = await visit.ask(
        lambda snapshot: listed(
            snapshot, visit.services.subscription_id, find=find, after=after, limit=_PER_PAGE
        )
    )
    return visit.page("sets.html", page=page, find=find, after=after)


def listed(
    snapshot: Snapshot, subscription: str, *, find: str = "", after: str = "", limit: int
) -> SetPage:
    """In order of name: those with `find` in it, behind the name `after`.

    What is not shown is not looked at.
    """
    wanted, last = find.casefold(), after.casefold()
    views = inventory.scale_sets(
        snapshot, subscription, is_wanted=lambda name: name > last and wanted in name
    )
    found = list(islice(views, limit + 1))
    return SetPage(sets=[row_of(view) for view in found[:limit]], has_more=len(found) > limit)


def row_of(view: ScaleSetView) -> SetRow:
    is_flexible = declared_set(view).orchestration is Orchestration.FLEXIBLE
    behind = sum(not view.is_latest(vm) for vm in view.vms)
    return SetRow(view=view, behind=behind, is_flexible=is_flexible)


def address_of(id_: ResourceId, **more: str) -> str:
    """Of the page of a set."""
    return f"/sets/edit?{urlencode({'id': id_.path, **more})}"


# --- creating ------------------------------------------------------------------------------------


async def show_new(visit: Visit) -> Response:
    usual = [("capacity", "2"), ("mode", "Uniform"), ("notified", "on"), ("delay", "5")]
    return await _new(visit, Form(usual))


async def send_new(visit: Visit) -> Response:
    form = Form()
    try:
        form = await visit.form()
        id_ = ResourceId(
            subscription=visit.services.subscription_id,
            group=form.text("new_group") or form.required("group", "a resource group"),
            type=SCALE_SETS,
            name=form.required("name", "a name"),
        )
        is_flexible = form.text("mode") == Orchestration.FLEXIBLE
        change = ScaleSetChange(
            capacity=form.whole("capacity", least=0, most=MOST_INSTANCES),
            size=form.text("size") or None,
            orchestration=Orchestration.FLEXIBLE if is_flexible else Orchestration.UNIFORM,
            is_spot="spot" in form,
            is_notified=_is_notified(form),
            terminate_notice=_delay(form),
        )
        is_trial = form.text("step") == "preview"
        actions = visit.services.rehearsed if is_trial else visit.services.actions
        create = create_set_and_group if form.text("new_group") else create_set
        action = await actions.decide(
            lambda tx, context: create(tx, id_, change, context=context), by=visit.by
        )
        if is_trial:
            return await _new(visit, form, preview=visit.preview(action))
    except REFUSED as refusal:
        return await _new(visit, form, errors=mistakes(refusal, _FIELDS))
    return see(address_of(id_, done="saved"))


async def _new(
    visit: Visit,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    preview: Preview | None = None,
) -> Response:
    subscription = visit.services.subscription_id
    groups = await visit.ask(lambda snapshot: group_index.every(snapshot, subscription))
    return visit.page(
        "set_new.html",
        form=form,
        errors=errors,
        preview=preview,
        groups=[group.name for group in groups],
        delays=_DELAYS,
    )


# --- editing -------------------------------------------------------------------------------------


async def show_edit(visit: Visit) -> Response:
    view = await _find(visit, visit.query)
    return _edit(visit, view, _as_it_is(view))


async def send_edit(visit: Visit) -> Response:
    view = await _find(visit, visit.query)
    form = await visit.form()
    services = visit.services
    if form.text("step") == "preview-upgrade":
        action = await _upgrade(visit, services.rehearsed, view.id)
        return _edit(visit, view, _as_it_is(view), upgrade=visit.preview(action))
    try:
        change = _edited(form)
        is_trial = form.text("step") == "preview"
        actions = services.rehearsed if is_trial else services.actions
        action = await actions.decide(
            lambda tx, context: change_set(tx, view.id, change, context=context), by=visit.by
        )
        if is_trial:
            return _edit(visit, view, form, preview=visit.preview(action))
    except REFUSED as refusal:
        return _edit(visit, view, form, errors=mistakes(refusal, _FIELDS))
    return see(address_of(view.id, done="saved"))


async def upgrade(visit: Visit) -> Response:
    """Bring instances to the latest model."""
    view = await _find(visit, await visit.form())
    await _upgrade(visit, visit.services.actions, view.id)
    return see(address_of(view.id, done="upgraded"))


async def _upgrade(visit: Visit, actions: Actions, id_: ResourceId) -> SetAction:
    return await actions.decide(
        lambda tx, context: upgrade_set(tx, id_, context=context), by=visit.by
    )


def _edit(
    visit: Visit,
    view: ScaleSetView,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    preview: Preview | None = None,
    upgrade: Preview | None = None,
) -> Response:
    return visit.page(
        "set_edit.html",
        **row_of(view)._asdict(),
        form=form,
        errors=errors,
        preview=preview,
        upgrade=upgrade,
        delays=_DELAYS,
        is_automatic=declared_set(view).upgrade_mode is UpgradeMode.AUTOMATIC,
    )


async def _find(visit: Visit, form: Form) -> ScaleSetView:
    """Raises UnknownSetError."""
    id_ = read_set_id(form, "id")
    return await visit.ask(lambda snapshot: scale_sets.find(snapshot, id_))


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


def _is_notified(form: Form) -> bool:
    return form.text("notified") == "on"


def _delay(form: Form) -> timedelta | None:
    if not _is_notified(form):
        return None
    return form.minutes("delay", least=DEFAULT_TERMINATE, most=LONGEST_TERMINATE)
