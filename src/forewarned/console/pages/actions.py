"""The forms for actions: shown, previewed, sent."""

from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from forewarned.console.action_forms import ACTION_FORMS, BY_KEY, MOST_INSTANCES, ActionForm
from forewarned.console.actions import SetAction
from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.console.forms import Form
from forewarned.console.pages.sets import SetRow, address_of, listed, row_of
from forewarned.console.pages.suggestions import SETS
from forewarned.console.preview import Preview
from forewarned.core.model import EventSource, EventType
from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.azure.resource_ids import InvalidResourceIdError, ResourceId, same
from forewarned.service.fleet.apply import ScopeView
from forewarned.service.ports import Snapshot

TICKED: Final = 200
"""VMs up to which a form lists them to be ticked; beyond, their names are typed."""
_SETS_LISTED: Final = 100
"""Each is loaded with its VMs, to tell how many it has."""
_ANOTHER: Final = (
    "Nothing was done: the outcome has changed since the preview. Look again, then confirm"
)
_WORK_TYPES: Final = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What there is to choose from."""

    scopes: tuple[ScopeView, ...] = ()
    """Empty where there are too many VMs to list."""
    scale_sets: tuple[SetRow, ...] = ()
    lacks: str = ""
    """What must be there first, if it is not."""
    has_more_sets: bool = False
    """Whether there are too many to list."""
    types: tuple[EventType, ...] = tuple(EventType)
    work_types: tuple[EventType, ...] = _WORK_TYPES
    sources: tuple[EventSource, ...] = tuple(EventSource)
    most_instances: int = MOST_INSTANCES


async def list_actions(visit: Visit) -> Response:
    return visit.page("actions.html", actions=ACTION_FORMS)


async def show_action(visit: Visit) -> Response:
    """The query fills in the form: `/actions/restart?vm=web`; `step=preview` previews it."""
    form = visit.query
    if form.text("step") != "preview":
        return await _show(visit, form)
    action = _action(visit)
    try:
        preview = await _preview_of(visit, action, form)
    except REFUSED as refusal:
        return await _show(visit, form, errors=_mistakes(action, refusal))
    return await _show(visit, form, preview=preview)


async def send_action(visit: Visit) -> Response:
    action = _action(visit)
    form = Form()
    errors: dict[str, str] = {}
    try:
        form = await visit.form()
        is_sent = form.text("step") == "send"
        if is_sent and action.is_grave:
            preview = await _preview_of(visit, action, form)
            is_sent = form.text("shown") == preview.fingerprint
            if "shown" in form and not is_sent:
                errors[""] = _ANOTHER
        if is_sent:
            caused = await action.perform(visit.services.actions, form, visit.by)
            records = caused.events if isinstance(caused, SetAction) else caused
            if len(records) == 1:
                return see(f"/events/{records[0].event.id}?done=sent")
            if isinstance(caused, SetAction):
                return see(address_of(caused.after.id, done="saved"))
            return see("/?done=sent" if records else "/?done=nothing")
        preview = await _preview_of(visit, action, form)
    except REFUSED as refusal:
        return await _show(visit, form, errors=_mistakes(action, refusal))
    return await _show(visit, form, errors=errors, preview=preview)


async def _preview_of(visit: Visit, action: ActionForm, form: Form) -> Preview:
    caused = await action.perform(visit.services.rehearsed, form, visit.by)
    return visit.preview(caused, given=_given(action, form))


def _given(action: ActionForm, form: Form) -> tuple[str, ...]:
    """What was filled in, the same whether VMs were ticked or typed."""
    vms = sorted(map(str.casefold, form.names())) if "vms" in action.fields else []
    return (*vms, *(form.text(field) for field in action.fields if field != "vms"))


def _mistakes(action: ActionForm, refusal: Exception) -> dict[str, str]:
    return mistakes(refusal, frozenset(action.fields) | {"type"})


async def _show(
    visit: Visit,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    preview: Preview | None = None,
) -> Response:
    action = _action(visit)
    choices = await _choices(visit, action, form)
    ticked, typed = _chosen_vms(form, choices)
    return visit.page(
        "action.html",
        action=action,
        form=form,
        errors=errors,
        preview=preview,
        choices=choices,
        ticked=ticked,
        typed=typed,
    )


def _chosen_vms(form: Form, choices: Choices) -> tuple[frozenset[str], str]:
    """Which VMs of the list to tick; the others, in words, so that no choice is lost unseen."""
    given = {name.casefold(): name for name in form.texts("vm")}
    listed = (name for view in choices.scopes for name in view.scope.resources)
    ticked = frozenset(name for name in listed if given.pop(name.casefold(), None) is not None)
    return ticked, " ".join(filter(None, [form.text("vms"), *given.values()]))


def _action(visit: Visit) -> ActionForm:
    action = BY_KEY.get(visit.named("action"))
    if action is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return action


async def _choices(visit: Visit, action: ActionForm, form: Form) -> Choices:
    if "set" in action.fields:
        subscription = visit.services.subscription_id
        return await visit.ask(lambda snapshot: _choices_of_sets(snapshot, subscription, form))
    if "vms" in action.fields:
        return await _choices_of_vms(visit)
    if "scope" in action.fields:
        has_sets = await visit.ask(lambda s: bool(s.scopes_like("", kinds=SETS, limit=1)))
        return Choices(lacks="" if has_sets else "sets of VMs")
    has_vms = await visit.ask(lambda s: bool(s.vms_like("", limit=1)))
    return Choices(lacks="" if has_vms else "VMs")


async def _choices_of_vms(visit: Visit) -> Choices:
    """All scopes, unless they have too many VMs to be ticked: then none is loaded."""
    found = await visit.ask(lambda s: sum(1 for _ in islice(s.places(), TICKED + 1)))
    is_small = 0 < found <= TICKED
    scopes = tuple(await visit.use_cases.fleet.show()) if is_small else ()
    return Choices(scopes=scopes, lacks="" if found else "VMs")


def _choices_of_sets(snapshot: Snapshot, subscription: str, form: Form) -> Choices:
    page = listed(snapshot, subscription, limit=_SETS_LISTED)
    chosen = form.text("set")
    is_there = any(same(each.view.id.path, chosen) for each in page.sets)
    more = None if is_there or not page.has_more else _named(snapshot, chosen)
    found = [] if more is None else [row_of(more)]
    return Choices(
        scale_sets=(*found, *page.sets),
        lacks="" if page.sets else "scale sets",
        has_more_sets=page.has_more,
    )


def _named(snapshot: Snapshot, path: str) -> ScaleSetView | None:
    try:
        return inventory.scale_set(snapshot, ResourceId.parse(path))
    except InvalidResourceIdError:
        return None
