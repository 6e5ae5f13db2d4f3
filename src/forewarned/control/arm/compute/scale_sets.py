"""Scale sets: made, changed, scaled, brought to their model, operated on, deleted."""

from collections.abc import Mapping
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, created, no_content, ok, updated
from forewarned.control.arm.compute.actions import actions_on
from forewarned.control.arm.compute.api_versions import refuse_events_profile
from forewarned.control.arm.compute.scale_set_views import show_set, show_set_statuses
from forewarned.control.arm.errors import invalid_parameter, not_found, resource_not_found
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import (
    AT_LOCATION,
    GROUP,
    SUBSCRIPTION,
    Decision,
    Operation,
    delete,
    patch,
    post,
    put,
    read,
)
from forewarned.service.azure import inventory, operations, scale_sets
from forewarned.service.azure.actions import Action
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.azure.models.documents import Fields
from forewarned.service.azure.models.scale_set import VM_PROFILE
from forewarned.service.azure.resource_ids import SCALE_SETS, ResourceId
from forewarned.service.azure.scale_sets import SetOutcome
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import OperationRecord


def set_id(asked: Asked) -> ResourceId:
    return asked.id_of(SCALE_SETS, asked.path["set"])


def find(snapshot: Snapshot, asked: Asked) -> ScaleSetView:
    """Raises ArmError, and UnknownGroupError if its group does not exist either."""
    id_ = set_id(asked)
    view = inventory.scale_set(snapshot, id_)
    if view is None:
        groups.find_asked(snapshot, asked)
        raise resource_not_found(id_.path)
    return view


# --- declaring -----------------------------------------------------------------------------------


def put_in(tx: Transaction, asked: Asked, id_: ResourceId, body: Mapping[str, Any]) -> SetOutcome:
    """Create or change the set, as part of a transaction. Also for deployments."""
    _refuse_old_version(body, asked)
    return scale_sets.put(tx, id_, body, context=asked.context)


def _refuse_old_version(body: Mapping[str, Any], asked: Asked) -> None:
    refuse_events_profile(body, asked, f"properties.{VM_PROFILE}", "VirtualMachineProfile")


def put_set(tx: Transaction, asked: Asked) -> ArmAnswer:
    outcome = put_in(tx, asked, set_id(asked), asked.body or {})
    shown = show_set(outcome.view, state="Creating" if outcome.created else "Updating")
    return (created if outcome.created else updated)(
        shown, _open(tx, asked, outcome, "write"), asked
    )


def patch_set(tx: Transaction, asked: Asked) -> ArmAnswer:
    view, sent = find(tx, asked), asked.body or {}
    _refuse_old_version(sent, asked)
    outcome = scale_sets.change(tx, view, sent, context=asked.context)
    shown = show_set(outcome.view, state="Updating")
    return updated(shown, _open(tx, asked, outcome, "write"), asked)


def delete_set(tx: Transaction, asked: Asked) -> ArmAnswer:
    outcome = scale_sets.drop(tx, set_id(asked), force=is_forced(asked), context=asked.context)
    return no_content() if outcome is None else _accepted(tx, asked, outcome, "delete")


# --- looking -------------------------------------------------------------------------------------


def show(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(show_set(find(snapshot, asked)))


def show_statuses(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(show_set_statuses(find(snapshot, asked)))


def list_sets(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """Of a resource group, of a location, or of the subscription."""
    found = inventory.scale_sets(snapshot, *groups.listed_in(snapshot, asked))
    here = (view for view in found if asked.is_of_list(view.location))
    return ok(page(here, asked, lambda view: view.id.path.casefold(), show=show_set))


# --- upgrades that Azure makes by itself, and this server does not -------------------------------


def list_os_upgrades(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    find(snapshot, asked)
    return ok({"value": []})


def show_rolling_upgrade(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    raise not_found(
        "NotFound",
        f"The scale set '{find(snapshot, asked).id.name}' has had no rolling upgrade: this server"
        " upgrades instances to a new model when you update them (az vmss update-instances), or at"
        " once if the upgrade policy is Automatic.",
    )


# --- operating -----------------------------------------------------------------------------------


def upgrade(tx: Transaction, asked: Asked) -> ArmAnswer:
    instance_ids = _named_ids(asked)
    outcome = scale_sets.upgrade(tx, find(tx, asked), instance_ids, context=asked.context)
    return _accepted(tx, asked, outcome, "manualupgrade")


def delete_instances(tx: Transaction, asked: Asked) -> ArmAnswer:
    instance_ids, force = _named_ids(asked), is_forced(asked)
    outcome = scale_sets.delete_instances(
        tx, find(tx, asked), instance_ids, force=force, context=asked.context
    )
    return _accepted(tx, asked, outcome, "delete")


def _operate(action: Action) -> Decision:
    def operate(tx: Transaction, asked: Asked) -> ArmAnswer:
        instance_ids = _ids(asked)
        outcome = scale_sets.operate(
            tx, find(tx, asked), instance_ids, action, context=asked.context
        )
        return _accepted(tx, asked, outcome, action)

    return operate


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
        raise invalid_parameter(
            "instanceIds",
            "The value of parameter 'instanceIds' is invalid: expected a list of instance ids,"
            " or '*' for all.",
        )
    return given


def _accepted(tx: Transaction, asked: Asked, outcome: SetOutcome, action: str) -> ArmAnswer:
    return accepted(_open(tx, asked, outcome, action), asked)


def _open(tx: Transaction, asked: Asked, outcome: SetOutcome, action: str) -> OperationRecord:
    path = outcome.view.id.path
    return operations.open_(tx, path, action, outcome.event_ids, context=asked.context)


_SETS: Final = f"{GROUP}/providers/{SCALE_SETS}"
SET: Final = f"{_SETS}/{{set}}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    read(f"{SUBSCRIPTION}/providers/{SCALE_SETS}", list_sets),
    read(f"{AT_LOCATION}/virtualMachineScaleSets", list_sets),
    read(_SETS, list_sets),
    put(SET, put_set),
    patch(SET, patch_set),
    read(SET, show),
    delete(SET, delete_set),
    read(f"{SET}/instanceView", show_statuses),
    read(f"{SET}/osUpgradeHistory", list_os_upgrades),
    read(f"{SET}/rollingUpgrades/latest", show_rolling_upgrade),
    post(f"{SET}/manualupgrade", upgrade),
    post(f"{SET}/delete", delete_instances),
    post(f"{SET}/reimageall", _operate(Action.REIMAGE)),
    *actions_on(SET, _operate),
)
