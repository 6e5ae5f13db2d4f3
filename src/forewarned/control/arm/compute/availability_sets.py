"""Availability sets: declared, shown, deleted. None of it is a long-running operation."""

from typing import Final

from forewarned.control.arm.answers import ArmAnswer, finished, no_content, ok
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import GROUP, SUBSCRIPTION, Operation, delete, patch, put, read
from forewarned.service.azure import availability_sets as sets
from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import AvailabilitySetView
from forewarned.service.azure.models.availability_set import declared_availability_set
from forewarned.service.azure.models.documents import Json, put_at
from forewarned.service.azure.resource_ids import AVAILABILITY_SETS, ResourceId
from forewarned.service.ports import Snapshot, Transaction


def shown(view: AvailabilitySetView) -> Json:
    document = declared_availability_set(view).document
    members = [{"id": inventory.resource_id(vm).path} for vm in view.vms]
    put_at(document, "properties.virtualMachines", members)
    return {"id": view.id.path, "name": view.id.name, "type": AVAILABILITY_SETS, **document}


# --- operations ----------------------------------------------------------------------------------


def put_set(tx: Transaction, asked: Asked) -> ArmAnswer:
    """200 also for a new set: clients accept nothing else."""
    sent = asked.body or {}
    return ok(shown(sets.put(tx, _id(asked), sent, context=asked.context)))


def patch_set(tx: Transaction, asked: Asked) -> ArmAnswer:
    view, sent = _find(tx, asked), asked.body or {}
    return ok(shown(sets.change(tx, view, sent, context=asked.context)))


def show_set(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(shown(_find(snapshot, asked)))


def delete_set(tx: Transaction, asked: Asked) -> ArmAnswer:
    return finished() if sets.drop(tx, _id(asked), by=asked.by) else no_content()


def list_sets(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """Of a resource group, or of the subscription."""
    views = inventory.availability_sets(snapshot, *groups.listed_in(snapshot, asked))
    return ok(page(views, asked, lambda view: view.id.path.casefold(), show=shown))


def _find(snapshot: Snapshot, asked: Asked) -> AvailabilitySetView:
    groups.find_asked(snapshot, asked)
    return sets.find(snapshot, _id(asked))


def _id(asked: Asked) -> ResourceId:
    return asked.id_of(AVAILABILITY_SETS, asked.path["name"])


_ONE: Final = f"{GROUP}/providers/{AVAILABILITY_SETS}/{{name}}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    put(_ONE, put_set),
    patch(_ONE, patch_set),
    read(_ONE, show_set),
    delete(_ONE, delete_set),
    read(f"{GROUP}/providers/{AVAILABILITY_SETS}", list_sets),
    read(f"{SUBSCRIPTION}/providers/{AVAILABILITY_SETS}", list_sets),
)
