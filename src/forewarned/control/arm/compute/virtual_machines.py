"""Virtual machines that are resources of their own: declared, shown, operated, deleted."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, created, no_content, ok, updated
from forewarned.control.arm.compute.api_versions import refuse_events_profile
from forewarned.control.arm.compute.locations import AT_LOCATION, is_at
from forewarned.control.arm.compute.vm_views import instance_view, shown
from forewarned.control.arm.errors import bad_request, invalid_parameter
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import Operation, delete, patch, post, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import Role
from forewarned.service.azure import inventory, operations, vms
from forewarned.service.azure.actions import Action
from forewarned.service.azure.context import Outcome
from forewarned.service.azure.inventory import VmView
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import MACHINES, SCALE_SETS, ResourceId, same
from forewarned.service.azure.vms import UnknownVmError, VmOutcome
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Binding, OperationRecord

_EXPANSIONS: Final = frozenset({"instanceview", "userdata"})
"""User data is never shown, so asking for it adds nothing."""
_IN_SET: Final = re.compile(
    r"\s*'?virtualMachineScaleSet/id'?\s+eq\s+'(?P<id>[^']+)'\s*", re.IGNORECASE
)


# --- declaring -----------------------------------------------------------------------------------


def put_in(tx: Transaction, asked: Asked, id_: ResourceId, body: Mapping[str, Any]) -> VmOutcome:
    """Create or change the VM, as part of a transaction. Also for deployments."""
    _refuse_old_version(body, asked)
    return vms.put(tx, id_, body, context=asked.context)


def _refuse_old_version(body: Mapping[str, Any], asked: Asked) -> None:
    refuse_events_profile(body, asked, "properties", "VirtualMachineProperties")


async def put_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> tuple[Json, bool, OperationRecord]:
        outcome = put_in(tx, asked, _id(asked), asked.body or {})
        return shown(tx, outcome.view), outcome.created, _open(tx, asked, outcome, "put")

    body, is_new, record = await services.engine.decide(work)
    return (created if is_new else updated)(body, record, asked)


async def patch_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> tuple[Json, OperationRecord]:
        machine = _find(tx, asked)
        sent = asked.body or {}
        _refuse_old_version(sent, asked)
        outcome = vms.change(tx, machine, sent, context=asked.context)
        return shown(tx, outcome.view), _open(tx, asked, outcome, "put")

    return updated(*await services.engine.decide(work), asked)


def _open(tx: Transaction, asked: Asked, outcome: VmOutcome, action: str) -> OperationRecord:
    path = inventory.resource_id(outcome.view).path
    return operations.open_(tx, path, action, outcome.event_ids, context=asked.context)


async def delete_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    force = (asked.option("forceDeletion") or "").casefold() == "true"

    def work(tx: Transaction) -> OperationRecord | None:
        outcome = vms.drop(tx, _id(asked), force=force, context=asked.context)
        return None if outcome is None else _open(tx, asked, outcome, "delete")

    record = await services.engine.decide(work)
    return no_content() if record is None else accepted(record, asked)


# --- showing -------------------------------------------------------------------------------------


async def show_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    expanded = _expanded(asked)

    def question(snapshot: Snapshot) -> Json:
        machine = _find(snapshot, asked)
        return shown(snapshot, machine, with_instance_view=expanded)

    return ok(await services.engine.ask(question))


async def show_instance_view(services: ArmServices, asked: Asked) -> ArmAnswer:
    return ok(instance_view(await services.engine.ask(lambda snapshot: _find(snapshot, asked))))


async def list_in_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _listed(services, asked, group=asked.path["group"])


async def list_in_subscription(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _listed(services, asked, group=None)


async def list_at_location(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _listed(services, asked, group=None)


async def list_extensions(services: ArmServices, asked: Asked) -> ArmAnswer:
    """An empty list: nothing is installed in a VM here."""
    await services.engine.ask(lambda snapshot: _find(snapshot, asked))
    return ok({"value": []})


async def _listed(services: ArmServices, asked: Asked, *, group: str | None) -> ArmAnswer:
    expanded = _expanded(asked) or (asked.option("statusOnly") or "").casefold() == "true"
    is_wanted = _filter(asked)
    subscription = asked.path["subscription"]

    def question(snapshot: Snapshot) -> Json:
        if group is not None:
            groups.find(snapshot, subscription, group)

        def show(binding: Binding) -> Json:
            machine = inventory.by_name(snapshot, binding.name)
            assert machine is not None  # noqa: S101  # a snapshot agrees with itself
            return shown(snapshot, machine, with_instance_view=expanded)

        bindings = inventory.own_bindings(snapshot, subscription, group)
        here = (each for each in bindings if is_at(each.profile.location, asked))
        return page(filter(is_wanted, here), asked, _key, show=show)

    return ok(await services.engine.ask(question))


def _key(binding: Binding) -> str:
    return binding.name.casefold()


def _filter(asked: Asked) -> Callable[[Binding], bool]:
    text = asked.option("$filter")
    if text is None:
        return lambda _: True
    found = _IN_SET.fullmatch(text)
    if found is None:
        raise bad_request(
            "InvalidFilterInQueryString",
            f"Invalid $filter '{text[:200]}': expected"
            " \"'virtualMachineScaleSet/id' eq '{id}'\".",
            target="$filter",
        )
    id_ = ResourceId.parse(found["id"])
    if not same(id_.type, SCALE_SETS):
        raise invalid_parameter("$filter", "The $filter needs the id of a scale set.")

    def is_in_set(binding: Binding) -> bool:
        profile = binding.profile
        return (
            same(profile.scale_set, id_.name)
            and same(profile.resource_group, id_.group)
            and same(profile.subscription_id, id_.subscription)
        )

    return is_in_set


def _expanded(asked: Asked) -> bool:
    """Whether the instance view is wanted."""
    wanted = (asked.option("$expand") or "").replace(" ", "").lower().split(",")
    unknown = [each for each in wanted if each and each not in _EXPANSIONS]
    if unknown:
        raise invalid_parameter(
            "$expand", f"'{unknown[0][:60]}' can't be expanded: expected instanceView or userData."
        )
    return "instanceview" in wanted


def _find(snapshot: Snapshot, asked: Asked) -> VmView:
    """Raises UnknownVmError, and UnknownGroupError if its group does not exist either."""
    id_ = _id(asked)
    machine = inventory.virtual_machine(snapshot, id_)
    if machine is None:
        groups.find(snapshot, id_.subscription, id_.group)
        raise UnknownVmError(id_.path)
    return machine


# --- operating -----------------------------------------------------------------------------------

Answer = Callable[[ArmServices, Asked], Awaitable[ArmAnswer]]


def _operating(action: Action) -> Answer:
    async def operate(services: ArmServices, asked: Asked) -> ArmAnswer:
        def work(tx: Transaction) -> OperationRecord:
            machine = _find(tx, asked)
            outcome = vms.operate(tx, machine, action, context=asked.context)
            return _open(tx, asked, outcome, action)

        return accepted(await services.engine.decide(work), asked)

    return operate


async def simulate_eviction(services: ArmServices, asked: Asked) -> ArmAnswer:
    """Not a long-running operation: clients accept nothing but 204."""

    def work(tx: Transaction) -> None:
        vms.operate(tx, _find(tx, asked), Action.EVICT, context=asked.context)

    await services.engine.decide(work)
    return no_content()


async def reapply(services: ArmServices, asked: Asked) -> ArmAnswer:
    """A VM is always as it is declared, so there is nothing to correct."""

    def work(tx: Transaction) -> OperationRecord:
        return _open(tx, asked, Outcome(view=_find(tx, asked)), "reapply")

    return accepted(await services.engine.decide(work), asked)


def _id(asked: Asked) -> ResourceId:
    return asked.id_of(MACHINES, asked.path["name"])


_SUBSCRIPTION: Final = "/subscriptions/{subscription}"
_GROUP: Final = f"{_SUBSCRIPTION}/resourceGroups/{{group}}"
_ONE: Final = f"{_GROUP}/providers/{MACHINES}/{{name}}"


def _action(word: str, answer: Answer, *, needs: Role = Role.ADMIN) -> Operation:
    return post(f"{_ONE}/{word}", answer, needs=needs)


OPERATIONS: Final[tuple[Operation, ...]] = (
    put(_ONE, put_machine),
    patch(_ONE, patch_machine),
    read(_ONE, show_machine),
    delete(_ONE, delete_machine),
    read(f"{_ONE}/instanceView", show_instance_view),
    read(f"{_GROUP}/providers/{MACHINES}", list_in_group),
    read(f"{_SUBSCRIPTION}/providers/{MACHINES}", list_in_subscription),
    read(f"{AT_LOCATION}/virtualMachines", list_at_location),
    read(f"{_ONE}/extensions", list_extensions),
    _action("restart", _operating(Action.RESTART), needs=Role.MAINTAINER),
    _action("redeploy", _operating(Action.REDEPLOY), needs=Role.MAINTAINER),
    _action("performMaintenance", _operating(Action.MAINTAIN), needs=Role.MAINTAINER),
    _action("start", _operating(Action.START)),
    _action("powerOff", _operating(Action.POWER_OFF)),
    _action("deallocate", _operating(Action.DEALLOCATE)),
    _action("reimage", _operating(Action.REIMAGE)),
    _action("simulateEviction", simulate_eviction, needs=Role.MAINTAINER),
    _action("reapply", reapply),
)
