"""The VMs of a scale set, by their instance ids: listed, looked at, operated on, deleted."""

import re
from collections.abc import Callable
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, no_content, ok, updated
from forewarned.control.arm.compute import scale_sets as sets
from forewarned.control.arm.compute.scale_set_views import (
    instance_path,
    show_instance,
    show_instance_statuses,
)
from forewarned.control.arm.compute.scale_sets import (
    CAUSING_EVENTS,
    SET,
    SWITCHING,
    is_forced,
    set_id,
)
from forewarned.control.arm.compute.statuses import statuses
from forewarned.control.arm.errors import bad_request, resource_not_found
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import Answer, Operation, delete, post, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import Role
from forewarned.service.azure import operations, protection, scale_sets
from forewarned.service.azure.actions import Action
from forewarned.service.azure.inventory import ScaleSetView, VmView
from forewarned.service.azure.models.documents import Fields, Json
from forewarned.service.azure.models.scale_set import ModelsInUse
from forewarned.service.azure.protection import Protection
from forewarned.service.azure.resource_ids import same
from forewarned.service.azure.scale_sets import SetOutcome
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
    id_, instance_id = set_id(asked), asked.path["instance"]
    view = sets.find(snapshot, id_)
    for machine in view.vms:
        if same(machine.instance_id, instance_id):
            return view, machine
    raise resource_not_found(f"{view.id.path}/virtualMachines/{instance_id}")


# --- looking -------------------------------------------------------------------------------------


async def list_instances(services: ArmServices, asked: Asked) -> ArmAnswer:
    conditions = _conditions(asked)
    with_statuses = _wants_statuses(asked)

    def question(snapshot: Snapshot) -> dict[str, object]:
        view = sets.find(snapshot, set_id(asked))
        models = ModelsInUse(snapshot, view)
        protections = protection.of_set(snapshot, view)

        def shown(machine: VmView) -> Json:
            model = models.of(machine)
            instance = show_instance(view, machine, model, with_statuses=with_statuses)
            return _with_protection(instance, protections.get(machine.name))

        chosen = (m for m in view.vms if all(meets(view, m) for meets in conditions))
        return page(chosen, asked, _key, show=shown)

    return ok(await services.engine.ask(question))


async def show(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> Json:
        view, machine = find(snapshot, asked)
        return _shown(snapshot, view, machine, with_statuses=_wants_statuses(asked))

    return ok(await services.engine.ask(question))


def _shown(
    snapshot: Snapshot, view: ScaleSetView, machine: VmView, *, with_statuses: bool = False
) -> Json:
    model = ModelsInUse(snapshot, view).of(machine)
    instance = show_instance(view, machine, model, with_statuses=with_statuses)
    return _with_protection(instance, protection.of_set(snapshot, view).get(machine.name))


def _with_protection(instance: Json, held: Protection | None) -> Json:
    if held is not None:
        instance["properties"][_PROTECTION] = {
            "protectFromScaleIn": held.from_scale_in,
            "protectFromScaleSetActions": held.from_set_actions,
        }
    return instance


async def show_statuses(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> Json:
        return show_instance_statuses(find(snapshot, asked)[1])

    return ok(await services.engine.ask(question))


def _key(machine: VmView) -> str:
    """Orders instances by number, and VMs of Flexible sets by name."""
    return machine.instance_id.zfill(12) if machine.is_instance else machine.name.casefold()


def _wants_statuses(asked: Asked) -> bool:
    wanted = f"{asked.option('$expand') or ''},{asked.option('$select') or ''}".lower()
    return "instanceview" in re.split(r"[\s,/]+", wanted)


def _conditions(asked: Asked) -> list[Condition]:
    text = (asked.option("$filter") or "").strip()
    found = [(each, _FILTERS.fullmatch(each)) for each in _AND.split(text) if text]
    for each, match in found:
        if match is None:
            raise bad_request(
                "InvalidParameter",
                f"The $filter '{each[:200]}' is not supported: expected"
                " startswith(instanceView/statuses/code, 'PowerState/…') eq true,"
                " instanceView/statuses/code eq '…' or latestModelApplied eq true or false,"
                " joined by 'and'.",
                target="$filter",
            )
    return [_condition(match) for _, match in found if match is not None]


def _condition(found: re.Match[str]) -> Condition:
    latest, code = found["latest"], found["code"]
    if latest is not None:
        return lambda view, machine: view.is_latest(machine) is (latest.lower() == "true")
    if code is not None:
        return lambda _, machine: code.lower() in _codes(machine)
    prefix = found["prefix"].lower()
    begins = (found["begins"] or "true").lower() == "true"
    return lambda _, machine: any(each.startswith(prefix) for each in _codes(machine)) is begins


def _codes(machine: VmView) -> list[Any]:
    return [each["code"].lower() for each in statuses(machine)]


# --- protecting ----------------------------------------------------------------------------------


async def put_instance(services: ArmServices, asked: Asked) -> ArmAnswer:
    """Only an instance's protection can be changed: the rest follows from the set's model."""
    given = Fields(asked.body or {}).object("properties").object(_PROTECTION)
    from_scale_in = given.flag("protectFromScaleIn")
    from_set_actions = given.flag("protectFromScaleSetActions")

    def work(tx: Transaction) -> tuple[Json, OperationRecord]:
        view, machine = find(tx, asked)
        former = protection.of_set(tx, view).get(machine.name, protection.NONE)
        wanted = Protection(
            from_scale_in=former.from_scale_in if from_scale_in is None else from_scale_in,
            from_set_actions=(
                former.from_set_actions if from_set_actions is None else from_set_actions
            ),
        )
        if wanted != former:
            protection.put(tx, machine, wanted)
        path = instance_path(view, machine)
        record = operations.open_(tx, path, "write", (), context=asked.context)
        return _shown(tx, view, machine), record

    return updated(*await services.engine.decide(work), asked)


# --- operating -----------------------------------------------------------------------------------


async def delete_instance(services: ArmServices, asked: Asked) -> ArmAnswer:
    id_, instance_id = set_id(asked), asked.path["instance"]

    def work(tx: Transaction) -> OperationRecord | None:
        view = sets.find(tx, id_)
        if not any(same(machine.instance_id, instance_id) for machine in view.vms):
            return None
        outcome = scale_sets.delete_instances(
            tx, view, [instance_id], force=is_forced(asked), context=asked.context
        )
        path = f"{view.id.path}/virtualMachines/{instance_id}"
        return _open(tx, asked, path, "delete", outcome)

    record = await services.engine.decide(work)
    return no_content() if record is None else accepted(record, asked)


def _operate(action: Action) -> Answer:
    async def answer(services: ArmServices, asked: Asked) -> ArmAnswer:
        def work(tx: Transaction) -> OperationRecord:
            return _operated(tx, asked, action)

        return accepted(await services.engine.decide(work), asked)

    return answer


async def evict(services: ArmServices, asked: Asked) -> ArmAnswer:
    """Not a long-running operation: clients do not wait for the eviction."""

    def work(tx: Transaction) -> None:
        _operated(tx, asked, Action.EVICT)

    await services.engine.decide(work)
    return no_content()


def _operated(tx: Transaction, asked: Asked, action: Action) -> OperationRecord:
    view, machine = find(tx, asked)
    outcome = scale_sets.operate(tx, view, [machine.instance_id], action, context=asked.context)
    return _open(tx, asked, instance_path(view, machine), action, outcome)


def _open(
    tx: Transaction, asked: Asked, path: str, action: str, outcome: SetOutcome
) -> OperationRecord:
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
    *(
        post(f"{INSTANCE}/{word}", _operate(action), needs=Role.MAINTAINER)
        for word, action in CAUSING_EVENTS.items()
    ),
    *(post(f"{INSTANCE}/{word}", _operate(action)) for word, action in SWITCHING.items()),
)
