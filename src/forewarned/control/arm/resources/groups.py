"""Resource groups, and what is in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, created, no_content, ok, updated
from forewarned.control.arm.errors import ArmError, conflict
from forewarned.control.arm.filters import equalities
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import Operation, delete, head, patch, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.service.azure import group_index, groups, operations
from forewarned.service.azure.group_index import GroupView
from forewarned.service.azure.models.documents import Fields, Json, decoded, encoded
from forewarned.service.azure.models.profiles import new_tags, read_location
from forewarned.service.azure.resource_ids import group_path, same
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import OperationRecord

_TYPE: Final = "Microsoft.Resources/resourceGroups"
# --- documents -----------------------------------------------------------------------------------


def _shown(view: GroupView) -> Json:
    declared = decoded(view.declaration)
    is_going = view.declaration is not None and view.declaration.is_going
    shown = {
        "id": group_path(view.subscription, view.name),
        "name": view.name,
        "type": _TYPE,
        "location": view.location,
        "tags": declared.get("tags", {}),
        "properties": {"provisioningState": "Deleting" if is_going else "Succeeded"},
    }
    if "managedBy" in declared:
        shown["managedBy"] = declared["managedBy"]
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    location: str | None
    tags: Mapping[str, str] | None
    managed_by: str | None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "_Wanted":
        fields = Fields(body)
        fields.object("properties")
        return cls(
            location=read_location(fields),
            tags=new_tags(fields) if "tags" in fields else None,
            managed_by=fields.text("managedBy", longest=1024),
        )

    def document(self, view: GroupView | None, *, keeps_tags: bool) -> str:
        """Raises ArmError where there is no location, or another one."""
        declared: Json = {} if view is None else decoded(view.declaration)
        location = self.location if view is None else view.location
        if location is None:
            raise ArmError(
                HTTPStatus.BAD_REQUEST,
                "LocationRequired",
                "The location property is required for this definition.",
                target="location",
            )
        if view is not None and self.location is not None and not same(self.location, location):
            raise conflict(
                "InvalidResourceGroupLocation",
                f"Invalid resource group location '{self.location}'."
                f" The Resource group already exists in location '{location}'.",
            )
        tags = self.tags
        if tags is None:
            tags = declared.get("tags", {}) if keeps_tags else {}
        document: Json = {"location": location, "tags": tags}
        managed_by = self.managed_by or declared.get("managedBy")
        if managed_by is not None:
            document["managedBy"] = managed_by
        return encoded(document)


# --- operations ----------------------------------------------------------------------------------


async def put_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    subscription, name = asked.path["subscription"], asked.path["group"]
    groups.refuse_name(name)
    wanted = _Wanted.read(asked.body or {})

    def work(tx: Transaction) -> groups.GroupOutcome:
        view = group_index.find(tx, subscription, name)
        document = wanted.document(view, keeps_tags=False)
        return groups.put(tx, subscription, name, document, by=asked.by)

    outcome = await services.engine.decide(work)
    answer = created if outcome.created else updated
    return answer(_shown(outcome.view), None, asked)


async def patch_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    subscription, name = asked.path["subscription"], asked.path["group"]
    wanted = _Wanted.read(asked.body or {})

    def work(tx: Transaction) -> groups.GroupOutcome:
        view = find(tx, subscription, name)
        document = wanted.document(view, keeps_tags=True)
        return groups.put(tx, subscription, name, document, by=asked.by)

    outcome = await services.engine.decide(work)
    return ok(_shown(outcome.view))


async def show_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> GroupView:
        return find(snapshot, asked.path["subscription"], asked.path["group"])

    return ok(_shown(await services.engine.ask(question)))


async def check_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    await show_group(services, asked)
    return no_content()


async def list_groups(services: ArmServices, asked: Asked) -> ArmAnswer:
    wanted = equalities(asked, ("tagname", "tagvalue"))

    def question(snapshot: Snapshot) -> list[GroupView]:
        return group_index.every(snapshot, asked.path["subscription"])

    views = [
        view
        for view in await services.engine.ask(question)
        if has_tag(decoded(view.declaration).get("tags", {}), wanted)
    ]
    return ok(page(views, asked, lambda view: view.name.casefold(), show=_shown))


async def delete_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    subscription, name = asked.path["subscription"], asked.path["group"]

    def work(tx: Transaction) -> OperationRecord:
        view = find(tx, subscription, name)
        outcome = groups.drop(tx, subscription, name, context=asked.context)
        path = group_path(subscription, view.name)
        return operations.open_(tx, path, "delete", outcome.event_ids, context=asked.context)

    return accepted(await services.engine.decide(work), asked)


find: Final = groups.find
"""What all that is in groups looks for its own with."""


def locations(snapshot: Snapshot, services: ArmServices, subscription: str) -> list[str]:
    """The server's own, and wherever there are groups and VMs. Any other name is taken as well."""
    used = {view.location for view in group_index.every(snapshot, subscription)}
    used |= {place.location for place in snapshot.resource_groups()}
    return list(dict.fromkeys([services.location, *sorted(used - {""})]))


def has_tag(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Names of tags are compared in any letter case, values are not."""
    name = wanted.get("tagname")
    if name is None:
        return "tagvalue" not in wanted or wanted["tagvalue"] in tags.values()
    found = [value for known, value in tags.items() if same(known, name)]
    return bool(found) and wanted.get("tagvalue", found[0]) == found[0]


_GROUPS: Final = "/subscriptions/{subscription}/resourceGroups"
_GROUP: Final = f"{_GROUPS}/{{group}}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    put(_GROUP, put_group),
    patch(_GROUP, patch_group),
    read(_GROUP, show_group),
    head(_GROUP, check_group),
    delete(_GROUP, delete_group),
    read(_GROUPS, list_groups),
)
