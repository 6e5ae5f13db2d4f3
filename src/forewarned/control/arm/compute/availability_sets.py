"""Availability sets: declared, shown, deleted. None of it is a long-running operation."""

from typing import Final

from forewarned.control.arm.answers import ArmAnswer, finished, no_content, ok
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import Operation, delete, patch, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.service.azure import availability_sets as sets
from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import AvailabilitySetView
from forewarned.service.azure.models.availability_set import declared_availability_set
from forewarned.service.azure.models.documents import Json, put_at
from forewarned.service.azure.resource_ids import AVAILABILITY_SETS, ResourceId
from forewarned.service.ports import Snapshot, Transaction


def shown(view: AvailabilitySetView) -> Json:
    document = declared_availability_set(view).document
    members = [{"id": inventory.resource_id(machine).path} for machine in view.vms]
    put_at(document, "properties.virtualMachines", members)
    return {"id": view.id.path, "name": view.id.name, "type": AVAILABILITY_SETS, **document}


# --- operations ----------------------------------------------------------------------------------


async def put_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    """200 also for a new set: clients accept nothing else."""

    def work(tx: Transaction) -> Json:
        sent = asked.body or {}
        return shown(sets.put(tx, _id(asked), sent, context=asked.context))

    return ok(await services.engine.decide(work))


async def patch_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> Json:
        view, sent = _find(tx, asked), asked.body or {}
        return shown(sets.change(tx, view, sent, context=asked.context))

    return ok(await services.engine.decide(work))


async def show_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    return ok(shown(await services.engine.ask(lambda snapshot: _find(snapshot, asked))))


async def delete_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> bool:
        return sets.drop(tx, _id(asked), by=asked.by)

    return finished() if await services.engine.decide(work) else no_content()


async def list_in_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> list[AvailabilitySetView]:
        subscription = asked.path["subscription"]
        view = groups.find(snapshot, subscription, asked.path["group"])
        return list(inventory.availability_sets(snapshot, subscription, view.name))

    return _listed(await services.engine.ask(question), asked)


async def list_in_subscription(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> list[AvailabilitySetView]:
        return list(inventory.availability_sets(snapshot, asked.path["subscription"]))

    return _listed(await services.engine.ask(question), asked)


def _listed(views: list[AvailabilitySetView], asked: Asked) -> ArmAnswer:
    return ok(page(views, asked, lambda view: view.id.path.casefold(), show=shown))


def _find(snapshot: Snapshot, asked: Asked) -> AvailabilitySetView:
    id_ = _id(asked)
    groups.find(snapshot, id_.subscription, id_.group)
    return sets.find(snapshot, id_)


def _id(asked: Asked) -> ResourceId:
    return asked.id_of(AVAILABILITY_SETS, asked.path["name"])


_SUBSCRIPTION: Final = "/subscriptions/{subscription}"
_GROUP: Final = f"{_SUBSCRIPTION}/resourceGroups/{{group}}"
_ONE: Final = f"{_GROUP}/providers/{AVAILABILITY_SETS}/{{name}}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    put(_ONE, put_set),
    patch(_ONE, patch_set),
    read(_ONE, show_set),
    delete(_ONE, delete_set),
    read(f"{_GROUP}/providers/{AVAILABILITY_SETS}", list_in_group),
    read(f"{_SUBSCRIPTION}/providers/{AVAILABILITY_SETS}", list_in_subscription),
)
