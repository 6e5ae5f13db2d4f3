"""Scale sets: made, changed, scaled, brought to their model, operated on, deleted."""

from collections.abc import Mapping
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, created, no_content, ok, updated
from forewarned.control.arm.compute.api_versions import refuse_events_profile
from forewarned.control.arm.compute.locations import AT_LOCATION, is_at
from forewarned.control.arm.compute.scale_set_views import show_set, show_set_statuses
from forewarned.control.arm.errors import bad_request, resource_not_found
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import Answer, Operation, delete, patch, post, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import Role
from forewarned.service.azure import inventory, operations, scale_sets
from forewarned.service.azure.actions import Action
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.azure.models.documents import Fields, Json
from forewarned.service.azure.models.scale_set import VM_PROFILE
from forewarned.service.azure.resource_ids import SCALE_SETS, ResourceId
from forewarned.service.azure.scale_sets import SetOutcome
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import OperationRecord


def set_id(asked: Asked) -> ResourceId:
    return asked.id_of(SCALE_SETS, asked.path["set"])


def find(snapshot: Snapshot, id_: ResourceId) -> ScaleSetView:
    """Raises ArmError, and UnknownGroupError if its group does not exist either."""
    view = inventory.scale_set(snapshot, id_)
    if view is None:
        groups.find(snapshot, id_.subscription, id_.group)
        raise resource_not_found(id_.path)
    return view


# --- declaring -----------------------------------------------------------------------------------


def put_in(
    tx: Transaction, asked: Asked, id_: ResourceId, body: Mapping[str, Any]
) -> tuple[Json, SetOutcome]:
    """Create or change the set: its JSON, and the outcome. Also for deployments."""
    _refuse_old_version(body, asked)
    outcome = scale_sets.put(tx, id_, body, context=asked.context)
    return show_set(outcome.view, state="Creating" if outcome.created else "Updating"), outcome


def _refuse_old_version(body: Mapping[str, Any], asked: Asked) -> None:
    refuse_events_profile(body, asked, f"properties.{VM_PROFILE}", "VirtualMachineProfile")


async def put_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> tuple[Json, bool, OperationRecord]:
        body, outcome = put_in(tx, asked, set_id(asked), asked.body or {})
        return body, outcome.created, _open(tx, asked, outcome, "write")

    body, is_new, record = await services.engine.decide(work)
    return (created if is_new else updated)(body, record, asked)


async def patch_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> tuple[Json, OperationRecord]:
        view = find(tx, set_id(asked))
        sent = asked.body or {}
        _refuse_old_version(sent, asked)
        outcome = scale_sets.change(tx, view, sent, context=asked.context)
        return show_set(outcome.view, state="Updating"), _open(tx, asked, outcome, "write")

    return updated(*await services.engine.decide(work), asked)


async def delete_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    id_ = set_id(asked)

    def work(tx: Transaction) -> OperationRecord | None:
        outcome = scale_sets.drop(tx, id_, force=is_forced(asked), context=asked.context)
        return None if outcome is None else _open(tx, asked, outcome, "delete")

    record = await services.engine.decide(work)
    return no_content() if record is None else accepted(record, asked)


# --- looking -------------------------------------------------------------------------------------


async def show(services: ArmServices, asked: Asked) -> ArmAnswer:
    return ok(show_set(await _asked_for(services, asked)))


async def show_statuses(services: ArmServices, asked: Asked) -> ArmAnswer:
    return ok(show_set_statuses(await _asked_for(services, asked)))


async def _asked_for(services: ArmServices, asked: Asked) -> ScaleSetView:
    return await services.engine.ask(lambda snapshot: find(snapshot, set_id(asked)))


async def list_in_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    subscription, group = asked.path["subscription"], asked.path["group"]

    def question(snapshot: Snapshot) -> list[ScaleSetView]:
        groups.find(snapshot, subscription, group)
        return list(inventory.scale_sets(snapshot, subscription, group))

    return ok(_page(await services.engine.ask(question), asked))


async def list_all(services: ArmServices, asked: Asked) -> ArmAnswer:
    subscription = asked.path["subscription"]

    def question(snapshot: Snapshot) -> list[ScaleSetView]:
        return list(inventory.scale_sets(snapshot, subscription))

    return ok(_page(await services.engine.ask(question), asked))


async def list_at_location(services: ArmServices, asked: Asked) -> ArmAnswer:
    subscription = asked.path["subscription"]

    def question(snapshot: Snapshot) -> list[ScaleSetView]:
        found = inventory.scale_sets(snapshot, subscription)
        return [view for view in found if is_at(view.location, asked)]

    return ok(_page(await services.engine.ask(question), asked))


def _page(views: list[ScaleSetView], asked: Asked) -> Json:
    return page(views, asked, lambda view: view.id.path.casefold(), show=show_set)


# --- operating -----------------------------------------------------------------------------------


async def upgrade(services: ArmServices, asked: Asked) -> ArmAnswer:
    id_, instance_ids = set_id(asked), _named_ids(asked)

    def work(tx: Transaction) -> OperationRecord:
        outcome = scale_sets.upgrade(tx, find(tx, id_), instance_ids, context=asked.context)
        return _open(tx, asked, outcome, "manualupgrade")

    return accepted(await services.engine.decide(work), asked)


async def delete_instances(services: ArmServices, asked: Asked) -> ArmAnswer:
    id_, instance_ids = set_id(asked), _named_ids(asked)

    def work(tx: Transaction) -> OperationRecord:
        outcome = scale_sets.delete_instances(
            tx,
            find(tx, id_),
            instance_ids,
            force=is_forced(asked),
            context=asked.context,
        )
        return _open(tx, asked, outcome, "delete")

    return accepted(await services.engine.decide(work), asked)


def _operate(action: Action) -> Answer:
    async def answer(services: ArmServices, asked: Asked) -> ArmAnswer:
        id_, instance_ids = set_id(asked), _ids(asked)

        def work(tx: Transaction) -> OperationRecord:
            outcome = scale_sets.operate(
                tx, find(tx, id_), instance_ids, action, context=asked.context
            )
            return _open(tx, asked, outcome, action)

        return accepted(await services.engine.decide(work), asked)

    return answer


def is_forced(asked: Asked) -> bool:
    return bool(Fields(asked.query).flag("forcedeletion"))


def _ids(asked: Asked) -> tuple[str, ...] | None:
    """None for all."""
    fields = Fields(asked.body or {})
    given = fields.texts("instanceIds")
    if given is not None and not given:
        raise fields.wrong("instanceIds", "expected at least one instance id, or '*' for all")
    return given


def _named_ids(asked: Asked) -> tuple[str, ...]:
    given = _ids(asked)
    if given is None:
        raise bad_request(
            "InvalidParameter",
            "The value of parameter 'instanceIds' is invalid: expected a list of instance ids,"
            " or '*' for all.",
            target="instanceIds",
        )
    return given


def _open(tx: Transaction, asked: Asked, outcome: SetOutcome, action: str) -> OperationRecord:
    path = outcome.view.id.path
    return operations.open_(tx, path, action, outcome.event_ids, context=asked.context)


_ALL: Final = "/subscriptions/{subscription}/providers/Microsoft.Compute/virtualMachineScaleSets"
_SETS: Final = (
    "/subscriptions/{subscription}/resourceGroups/{group}"
    "/providers/Microsoft.Compute/virtualMachineScaleSets"
)
SET: Final = f"{_SETS}/{{set}}"

CAUSING_EVENTS: Final = {
    "restart": Action.RESTART,
    "redeploy": Action.REDEPLOY,
    "performMaintenance": Action.MAINTAIN,
}
# Not for maintainers: these switch a VM off, or replace its disk.
SWITCHING: Final = {
    "reimage": Action.REIMAGE,
    "reimageall": Action.REIMAGE,
    "start": Action.START,
    "powerOff": Action.POWER_OFF,
    "deallocate": Action.DEALLOCATE,
}

OPERATIONS: Final[tuple[Operation, ...]] = (
    read(_ALL, list_all),
    read(f"{AT_LOCATION}/virtualMachineScaleSets", list_at_location),
    read(_SETS, list_in_group),
    put(SET, put_set),
    patch(SET, patch_set),
    read(SET, show),
    delete(SET, delete_set),
    read(f"{SET}/instanceView", show_statuses),
    post(f"{SET}/manualupgrade", upgrade),
    post(f"{SET}/delete", delete_instances),
    *(
        post(f"{SET}/{word}", _operate(action), needs=Role.MAINTAINER)
        for word, action in CAUSING_EVENTS.items()
    ),
    *(post(f"{SET}/{word}", _operate(action)) for word, action in SWITCHING.items()),
)
