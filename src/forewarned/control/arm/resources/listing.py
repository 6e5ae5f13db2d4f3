"""All that is in a resource group or a subscription, whatever its type."""

from collections.abc import Iterator
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.filters import equalities
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import GROUP, SUBSCRIPTION, Operation, read
from forewarned.service.azure import group_index, inventory
from forewarned.service.azure.models.documents import Json, decoded
from forewarned.service.azure.resource_ids import COMPUTE, ResourceId, group_path, same
from forewarned.service.ports import Snapshot
from forewarned.service.records import Declaration

_ASKED_OF: Final = ("resourcegroup", "resourcetype", "name", "location", "tagname", "tagvalue")
_DEPTH: Final = ResourceId(subscription="s", group="g", type="n/t", name="n").path.count("/")
_TRUTH: Final = tuple(
    f"{COMPUTE}/{each}".casefold()
    for each in ("virtualMachines", "virtualMachineScaleSets", "availabilitySets")
)
"""Of these the inventory tells which there are, not what was declared."""
# Azure lists no deployments among resources.
_UNLISTED: Final = "microsoft.resources/deployments"


def list_resources(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """Of a resource group, or of the subscription."""
    wanted = equalities(asked, _ASKED_OF)
    subscription, group = groups.listed_in(snapshot, asked)
    names = [group] if group else [view.name for view in group_index.every(snapshot, subscription)]
    shown = (
        each
        for name in names
        for each in in_group(snapshot, subscription, name)
        if _is_wanted(each, wanted)
    )
    return ok(page(shown, asked, lambda each: str(each["id"]).casefold()))


def _is_wanted(resource: Json, wanted: dict[str, str]) -> bool:
    here = {
        "resourcegroup": resource["id"].split("/")[4],
        "resourcetype": resource["type"],
        "name": resource["name"],
        "location": resource["location"],
    }
    plain = all(same(here[name], value) for name, value in wanted.items() if name in here)
    return plain and groups.has_tag(resource["tags"], wanted)


def in_group(snapshot: Snapshot, subscription: str, group: str) -> Iterator[Json]:
    """Each as lists show it: without its properties."""
    for vm in inventory.virtual_machines(snapshot, subscription, group):
        profile = vm.profile
        yield _shown(inventory.resource_id(vm), profile.location, dict(profile.tags))
    for view in inventory.scale_sets(snapshot, subscription, group):
        yield _of_set(snapshot, view.id, view.location, view.declaration)
    for each in inventory.availability_sets(snapshot, subscription, group):
        yield _of_set(snapshot, each.id, each.location, each.declaration)
    for declaration in snapshot.declarations(f"{group_path(subscription, group)}/"):
        if declaration.path.count("/") == _DEPTH:
            id_ = ResourceId.parse(declaration.path)
            if id_.type.casefold() not in (*_TRUTH, _UNLISTED):
                yield _of_set(snapshot, id_, "", declaration)


def _of_set(
    snapshot: Snapshot, id_: ResourceId, location: str, declaration: Declaration | None
) -> Json:
    document = decoded(declaration)
    if not location:
        group = group_index.find(snapshot, id_.subscription, id_.group)
        location = document.get("location") or ("" if group is None else group.location)
    return _shown(id_, location, document.get("tags") or {})


def _shown(id_: ResourceId, location: str, tags: dict[str, str]) -> Json:
    return {
        "id": id_.path,
        "name": id_.name,
        "type": id_.type,
        "location": location,
        "tags": tags,
    }


OPERATIONS: Final[tuple[Operation, ...]] = (
    read(f"{GROUP}/resources", list_resources),
    read(f"{SUBSCRIPTION}/resources", list_resources),
)
