"""The VMs of a scale set, by their instance ids: listed, looked at, operated on, deleted."""

import re
from collections.abc import Callable
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, accepted, no_content, ok, updated
from forewarned.control.arm.compute import scale_sets as sets
from forewarned.control.arm.compute.actions import actions_on
from forewarned.control.arm.compute.scale_set_views import (
    instance_path,
    show_instance,
    show_instance_statuses,
)
from forewarned.control.arm.compute.scale_sets import SET, is_forced
from forewarned.control.arm.compute.statuses import statuses
from forewarned.control.arm.errors import invalid_parameter, resource_not_found
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import Decision, Operation, delete, post, put, read
from forewarned.security.identities import Role
from forewarned.service.azure import operations, protection, scale_sets
from forewarned.service.azure.actions import Action
from forewarned.service.azure.inventory import ScaleSetView, VmView
from forewarned.service.azure.models.documents import Fields, Json
from forewarned.service.azure.models.scale_set import ModelsInUse
from forewarned.service.azure.protection import Protection
from forewarned.service.azure.resource_ids import same
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import OperationRecord

Condition = Callable[[ScaleSetView, VmView], bool]

_PROTECTION: Final = "protectionPolicy"
_FILTERS: Final = re.compile(
    r"startswith\(\s*instanceView/statuses/code\s*,\s*'(?P<prefix>[^']*)'\s*\)"
    r"(?:\s+eq\s+(?P<begins>true|false))?"
    r"|instanceView/statuses/code\s+eq\s+'(?P<code>[^']*)'"
    r"|(?:properties/)?latestModelApplied\s+eq\s+(?P<latest>true|false)",
    re.IGNORECASE,
)
# Matched only from the first blank of a run: otherwise a million blanks would take days.
_AND: Final = re.compile(r"(?<!\s)\s+and\s+", re.IGNORECASE)


def find(snapshot: Snapshot, asked: Asked) -> tuple[ScaleSetView, VmView]:
    view, instance_id = sets.find(snapshot, asked), asked.path["instance"]
    for vm in view.vms:
        if same(vm.instance_id, instance_id):
            return view, vm
    raise resource_not_found(f"{view.id.path}/virtualMachines/{instance_id}")


# --- looking -------------------------------------------------------------------------------------


def list_instances(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    conditions = _conditions(asked)
    view = sets.find(snapshot, asked)
    chosen = (vm for vm in view.vms if all(meets(view, vm) for meets in conditions))
    return ok(page(chosen, asked, _key, show=_shower(snapshot, asked, view)))


def show(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    view, vm = find(snapshot, asked)
    return ok(_shower(snapshot, asked, view)(vm))


def _shower(snapshot: Snapshot, asked: Asked, view: ScaleSetView) -> Callable[[VmView], Json]:
    """Models and protections are looked up once for all instances of an answer."""
    models = ModelsInUse(snapshot, view)
    protections = protection.of_set(snapshot, view)
    with_statuses = _wants_statuses(asked)

    def shown(vm: VmView) -> Json:
        instance = show_instance(view, vm, models.of(vm), with_statuses=with_statuses)
        held = protections.get(vm.name)
        if held is not None:
            instance["properties"][_PROTECTION] = {
                "protectFromScaleIn": held.from_scale_in,
                "protectFromScaleSetActions": held.from_set_actions,
            }
        return instance

    return shown


def show_statuses(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(show_instance_statuses(find(snapshot, asked)[1]))


def _key(vm: VmView) -> str:
    """Orders instances by number, and VMs of Flexible sets by name."""
    return vm.instance_id.zfill(12) if vm.is_instance else vm.name.casefold()


def _wants_statuses(asked: Asked) -> bool:
    wanted = f"{asked.option('$expand') or ''},{asked.option('$select') or ''}".lower()
    return "instanceview" in re.split(r"[\s,/]+", wanted)


def _conditions(asked: Asked) -> list[Condition]:
    text = (asked.option("$filter") or "").strip()
    found = [(each, _FILTERS.fullmatch(each)) for each in _AND.split(text) if text]
    for each, match in found:
        if match is None:
            raise invalid_parameter(
                "$filter",
                f"The $filter '{each[:200]}' is not supported: expected"
                " startswith(instanceView/statuses/code, 'PowerState/…') eq true,"
                " instanceView/statuses/code eq '…' or latestModelApplied eq true or false,"
                " joined by 'and'.",
            )
    return [_condition(match) for _, match in found if match is not None]


def _condition(found: re.Match[str]) -> Condition:
    latest, code = found["latest"], found["code"]
    if latest is not None:
        return lambda view, vm: view.is_latest(vm) is (latest.lower() == "true")
    if code is not None:
        return lambda _, vm: code.lower() in _codes(vm)
    prefix = found["prefix"].lower()
    begins = (found["begins"] or "true").lower() == "true"
    return lambda _, vm: any(each.startswith(prefix) for each in _codes(vm)) is begins


def _codes(vm: VmView) -> list[str]:
    return [each["code"].lower() for each in statuses(vm)]


# --- protecting ----------------------------------------------------------------------------------


def put_instance(tx: Transaction, asked: Asked) -> ArmAnswer:
    """Only an instance's protection can be changed: the rest follows from the set's model."""
    given = Fields(asked.body or {}).object("properties").object(_PROTECTION)
    from_scale_in = given.flag("protectFromScaleIn")
    from_set_actions = given.flag("protectFromScaleSetActions")
    view, vm = find(tx, asked)
    former = protection.of_set(tx, view).get(vm.name, protection.NONE)
    wanted = Protection(
        from_scale_in=former.from_scale_in if from_scale_in is None else from_scale_in,
        from_set_actions=former.from_set_actions if from_set_actions is None else from_set_actions,
    )
    if wanted != former:
        protection.put(tx, vm, wanted)
    record = operations.open_(tx, instance_path(view, vm), "write", (), context=asked.context)
    return updated(_shower(tx, asked, view)(vm), record, asked)


# --- operating -----------------------------------------------------------------------------------


def delete_instance(tx: Transaction, asked: Asked) -> ArmAnswer:
    view, instance_id = sets.find(tx, asked), asked.path["instance"]
    if not any(same(vm.instance_id, instance_id) for vm in view.vms):
        return no_content()
    outcome = scale_sets.delete_instances(
        tx, view, [instance_id], force=is_forced(asked), context=asked.context
    )
    path = f"{view.id.path}/virtualMachines/{instance_id}"
    return accepted(
        operations.open_(tx, path, "delete", outcome.event_ids, context=asked.context), asked
    )


def _operate(action: Action) -> Decision:
    def operate(tx: Transaction, asked: Asked) -> ArmAnswer:
        return accepted(_operated(tx, asked, action), asked)

    return operate


def evict(tx: Transaction, asked: Asked) -> ArmAnswer:
    """Not a long-running operation: clients do not wait for the eviction."""
    _operated(tx, asked, Action.EVICT)
    return no_content()


def _operated(tx: Transaction, asked: Asked, action: Action) -> OperationRecord:
    view, vm = find(tx, asked)
    outcome = scale_sets.operate(tx, view, [vm.instance_id], action, context=asked.context)
    path = instance_path(view, vm)
    return operations.open_(tx, path, action, outcome.event_ids, context=asked.context)


_INSTANCES: Final = f"{SET}/virtualMachines"
INSTANCE: Final = f"{_INSTANCES}/{{instance}}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    read(_INSTANCES, list_instances),
    read(INSTANCE, show),
    put(INSTANCE, put_instance),
    delete(INSTANCE, delete_instance),
    read(f"{INSTANCE}/instanceView", show_statuses),
    post(f"{INSTANCE}/simulateEviction", evict, needs=Role.MAINTAINER),
    post(f"{INSTANCE}/reimageall", _operate(Action.REIMAGE)),
    *actions_on(INSTANCE, _operate),
)
