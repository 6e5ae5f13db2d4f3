"""Virtual machines that are resources of their own: declared, shown, operated, deleted."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, created, no_content, ok, updated
from forewarned.control.arm.compute import availability_sets
from forewarned.control.arm.compute.locations import AT_LOCATION, is_at
from forewarned.control.arm.errors import bad_request, invalid_parameter
from forewarned.control.arm.models import vm_wire
from forewarned.control.arm.models.vm_views import (
    Declared,
    declared,
    instance_view,
    model_of,
    shown,
)
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked, Json
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import Operation, delete, patch, post, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import Role
from forewarned.service.azure import inventory, operations, vms
from forewarned.service.azure.actions import Action
from forewarned.service.azure.inventory import Machine
from forewarned.service.azure.resource_ids import MACHINES, SCALE_SETS, ResourceId, same
from forewarned.service.azure.vms import (
    MachineOutcome,
    ReadingSets,
    UnknownMachineError,
    WantedMachine,
)
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Binding, Declaration, OperationRecord

_SETS: Final = ReadingSets(domains=availability_sets.domains, is_flexible=vm_wire.is_flexible)
_EXPANSIONS: Final = frozenset({"instanceview", "userdata"})
"""User data is kept from everybody, so asking for it adds nothing."""
_IN_SET: Final = re.compile(
    r"\s*'?virtualMachineScaleSet/id'?\s+eq\s+'(?P<id>[^']+)'\s*", re.IGNORECASE
)


# --- declaring -----------------------------------------------------------------------------------


def put_in(
    tx: Transaction,
    services: ArmServices,
    asked: Asked,
    id_: ResourceId,
    body: Mapping[str, Any],
) -> MachineOutcome:
    """Make the VM what the body says, as part of a transaction: for deployments too."""
    group = groups.find(tx, id_.subscription, id_.group)
    known = ResourceId(
        subscription=id_.subscription, group=group.name, type=MACHINES, name=id_.name
    )

    def revise(machine: Machine | None, declaration: Declaration | None) -> WantedMachine:
        return vm_wire.wanted(
            known,
            body,
            machine,
            Declared(declaration, {} if machine is None else model_of(tx, machine)),
            api_version=asked.api_version,
            usual_location=groups.location_of(group) or services.location,
        )

    return vms.put(tx, known, revise, _SETS, context=asked.context, by=asked.by)


async def put_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _declared(services, asked)


async def patch_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _declared(services, asked, before=_find)


async def _declared(
    services: ArmServices,
    asked: Asked,
    *,
    before: Callable[[Snapshot, Asked], object] | None = None,
) -> ArmAnswer:
    """`before` looks at what there is, and may refuse."""

    def work(tx: Transaction) -> tuple[Json, bool, OperationRecord]:
        id_ = _id(asked)
        if before is not None:
            before(tx, asked)
        outcome = put_in(tx, services, asked, id_, asked.body or {})
        path = inventory.resource_id(outcome.machine).path
        record = operations.open_(tx, path, "put", outcome.event_ids, context=asked.context)
        return _show(tx, outcome.machine), outcome.created, record

    body, is_new, record = await services.engine.decide(work)
    return (created if is_new else updated)(body, record, asked)


async def delete_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    force = (asked.option("forceDeletion") or "").casefold() == "true"

    def work(tx: Transaction) -> OperationRecord | None:
        id_ = _id(asked)
        outcome = vms.drop(tx, id_, force=force, context=asked.context, by=asked.by)
        if outcome is None:
            return None
        path = inventory.resource_id(outcome.machine).path
        return operations.open_(tx, path, "delete", outcome.event_ids, context=asked.context)

    record = await services.engine.decide(work)
    return no_content() if record is None else accepted(record, asked)


# --- showing -------------------------------------------------------------------------------------


async def show_machine(services: ArmServices, asked: Asked) -> ArmAnswer:
    expanded = _expanded(asked)

    def question(snapshot: Snapshot) -> Json:
        machine = _find(snapshot, asked)
        return _show(snapshot, machine, with_instance_view=expanded)

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
    """None: nothing is installed in a VM here."""
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
            machine = inventory.machine(snapshot, binding.name)
            assert machine is not None  # noqa: S101  # a snapshot agrees with itself
            return _show(snapshot, machine, with_instance_view=expanded)

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
            " \"'virtualMachineScaleSet/id' eq '{id}'\", and no other.",
            target="$filter",
        )
    id_ = ResourceId.parse(found["id"])
    if not same(id_.type, SCALE_SETS):
        raise invalid_parameter("$filter", f"The $filter needs the id of one of {SCALE_SETS}.")

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


def _show(snapshot: Snapshot, machine: Machine, *, with_instance_view: bool = False) -> Json:
    return shown(machine, declared(snapshot, machine), with_instance_view=with_instance_view)


def _find(snapshot: Snapshot, asked: Asked) -> Machine:
    """Raises UnknownMachineError, and UnknownGroupError where not even the group is there."""
    id_ = _id(asked)
    machine = inventory.virtual_machine(snapshot, id_)
    if machine is None:
        groups.find(snapshot, id_.subscription, id_.group)
        raise UnknownMachineError(id_.path)
    return machine


# --- operating -----------------------------------------------------------------------------------

Answer = Callable[[ArmServices, Asked], Awaitable[ArmAnswer]]


def _operating(action: Action) -> Answer:
    async def operate(services: ArmServices, asked: Asked) -> ArmAnswer:
        def work(tx: Transaction) -> OperationRecord:
            _find(tx, asked)
            outcome = vms.operate(tx, _id(asked), action, context=asked.context, by=asked.by)
            path = inventory.resource_id(outcome.machine).path
            return operations.open_(tx, path, action, outcome.event_ids, context=asked.context)

        return accepted(await services.engine.decide(work), asked)

    return operate


async def simulate_eviction(services: ArmServices, asked: Asked) -> ArmAnswer:
    """Nobody waits for an eviction: clients take nothing but 204."""

    def work(tx: Transaction) -> None:
        _find(tx, asked)
        vms.operate(tx, _id(asked), Action.EVICT, context=asked.context, by=asked.by)

    await services.engine.decide(work)
    return no_content()


async def reapply(services: ArmServices, asked: Asked) -> ArmAnswer:
    """What a VM is and what is declared of it can't differ, so there is nothing to put right."""

    def work(tx: Transaction) -> OperationRecord:
        path = inventory.resource_id(_find(tx, asked)).path
        return operations.open_(tx, path, "reapply", (), context=asked.context)

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
