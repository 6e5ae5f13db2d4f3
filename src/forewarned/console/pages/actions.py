"""The forms for actions: shown, previewed, sent."""

from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.action_forms import ACTION_FORMS, BY_KEY, MOST_INSTANCES, ActionForm
from forewarned.console.actions import SetAction
from forewarned.console.context import REFUSED, Console, mistakes, see
from forewarned.console.forms import Form, read_form
from forewarned.console.listings.sets import SetSummary, address_of, listed, summary
from forewarned.console.pages.suggestions import SETS
from forewarned.console.preview import Preview
from forewarned.console.rendering import actor
from forewarned.core.model import Actor, EventSource, EventType
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
    scale_sets: tuple[SetSummary, ...] = ()
    lacks: str = ""
    """What must be there first, if it is not."""
    has_more_sets: bool = False
    """Whether there are too many to list."""
    types: tuple[EventType, ...] = tuple(EventType)
    work_types: tuple[EventType, ...] = _WORK_TYPES
    sources: tuple[EventSource, ...] = tuple(EventSource)
    most_instances: int = MOST_INSTANCES


async def list_actions(console: Console, request: Request) -> Response:
    return console.page(request, "actions.html", actions=ACTION_FORMS)


async def show_action(console: Console, request: Request) -> Response:
    """The query fills in the form: `/actions/restart?vm=web`; `step=preview` previews it."""
    form = Form(request.query_params.multi_items())
    if form.text("step") != "preview":
        return await _show(console, request, form)
    action = _action(request)
    try:
        preview = await _preview_of(console, action, form, actor(request))
    except REFUSED as refusal:
        return await _show(console, request, form, errors=_mistakes(action, refusal))
    return await _show(console, request, form, preview=preview)


async def send_action(console: Console, request: Request) -> Response:
    action = _action(request)
    form = Form()
    errors: dict[str, str] = {}
    try:
        form = await read_form(request)
        is_sent = form.text("step") == "send"
        if is_sent and action.is_grave:
            preview = await _preview_of(console, action, form, actor(request))
            is_sent = form.text("shown") == preview.fingerprint
            if "shown" in form and not is_sent:
                errors[""] = _ANOTHER
        if is_sent:
            caused = await action.perform(console.services.actions, form, actor(request))
            records = caused.events if isinstance(caused, SetAction) else caused
            if len(records) == 1:
                return see(f"/events/{records[0].event.id}?done=sent")
            if isinstance(caused, SetAction):
                return see(address_of(caused.after.id, done="saved"))
            return see("/?done=sent" if records else "/?done=nothing")
        preview = await _preview_of(console, action, form, actor(request))
    except REFUSED as refusal:
        return await _show(console, request, form, errors=_mistakes(action, refusal))
    return await _show(console, request, form, errors=errors, preview=preview)


async def _preview_of(console: Console, action: ActionForm, form: Form, by: Actor) -> Preview:
    caused = await action.perform(console.services.rehearsed, form, by)
    return console.preview(caused, given=_given(action, form))


def _given(action: ActionForm, form: Form) -> tuple[str, ...]:
    """What was filled in, the same whether VMs were ticked or typed."""
    vms = sorted(map(str.casefold, form.names())) if "vms" in action.fields else []
    return (*vms, *(form.text(field) for field in action.fields if field != "vms"))


def _mistakes(action: ActionForm, refusal: Exception) -> dict[str, str]:
    return mistakes(refusal, frozenset(action.fields) | {"type"})


async def _show(
    console: Console,
    request: Request,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    preview: Preview | None = None,
) -> Response:
    action = _action(request)
    choices = await _choices(console, action, form)
    ticked, typed = _chosen_vms(form, choices)
    return console.page(
        request,
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


def _action(request: Request) -> ActionForm:
    action = BY_KEY.get(request.path_params["action"])
    if action is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return action


async def _choices(console: Console, action: ActionForm, form: Form) -> Choices:
    if "set" in action.fields:
        return await _choices_of_sets(console, form)
    if "vms" in action.fields:
        return await _choices_of_vms(console)
    if "scope" in action.fields:
        return Choices(lacks="" if await console.services.engine.ask(_has_sets) else "sets of VMs")
    return Choices(lacks="" if await console.services.engine.ask(_has_vms) else "VMs")


def _has_sets(snapshot: Snapshot) -> bool:
    return bool(snapshot.scopes_like("", kinds=SETS, limit=1))


def _has_vms(snapshot: Snapshot) -> bool:
    return bool(snapshot.vms_like("", limit=1))


async def _choices_of_vms(console: Console) -> Choices:
    """All scopes, unless they have too many VMs to be ticked: then none is loaded."""

    def count(snapshot: Snapshot) -> int:
        return sum(1 for _ in islice(snapshot.places(), TICKED + 1))

    found = await console.services.engine.ask(count)
    is_small = 0 < found <= TICKED
    scopes = tuple(await console.use_cases.fleet.show()) if is_small else ()
    return Choices(scopes=scopes, lacks="" if found else "VMs")


async def _choices_of_sets(console: Console, form: Form) -> Choices:
    services = console.services

    def question(snapshot: Snapshot) -> Choices:
        page = listed(snapshot, services.subscription_id, limit=_SETS_LISTED)
        chosen = form.text("set")
        is_there = any(same(each.id.path, chosen) for each in page.sets)
        more = None if is_there or not page.has_more else _named(snapshot, chosen)
        found = () if more is None else (summary(more),)
        return Choices(
            scale_sets=found + page.sets,
            lacks="" if page.sets else "scale sets",
            has_more_sets=page.has_more,
        )

    return await services.engine.ask(question)


def _named(snapshot: Snapshot, path: str) -> ScaleSetView | None:
    try:
        return inventory.scale_set(snapshot, ResourceId.parse(path))
    except InvalidResourceIdError:
        return None
