"""Resource groups, and what is in them."""

from collections.abc import Mapping
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, created, no_content, ok, updated
from forewarned.control.arm.errors import bad_request, conflict
from forewarned.control.arm.filters import equalities
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import (
    GROUP,
    SUBSCRIPTION,
    Operation,
    delete,
    head,
    patch,
    put,
    read,
)
from forewarned.service.azure import group_index, groups, operations
from forewarned.service.azure.group_index import GroupView
from forewarned.service.azure.models.documents import Fields, Json, decoded, encoded
from forewarned.service.azure.models.profiles import new_tags, read_location
from forewarned.service.azure.resource_ids import group_path, same
from forewarned.service.ports import Snapshot, Transaction

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


def _document(sent: Mapping[str, Any], view: GroupView | None, *, keeps_tags: bool) -> str:
    """What is stored of a group. Raises ArmError where there is no location, or another one."""
    fields = Fields(sent)
    fields.object("properties")
    wanted = read_location(fields)
    declared: Json = {} if view is None else decoded(view.declaration)
    location = wanted if view is None else view.location
    if location is None:
        raise bad_request(
            "LocationRequired",
            "The location property is required for this definition.",
            target="location",
        )
    if wanted is not None and not same(wanted, location):
        raise conflict(
            "InvalidResourceGroupLocation",
            f"Invalid resource group location '{wanted}'."
            f" The Resource group already exists in location '{location}'.",
        )
    kept = declared.get("tags", {}) if keeps_tags else {}
    document: Json = {
        "location": location,
        "tags": new_tags(fields) if "tags" in fields else kept,
    }
    managed_by = fields.text("managedBy", longest=1024) or declared.get("managedBy")
    if managed_by is not None:
        document["managedBy"] = managed_by
    return encoded(document)


# --- operations ----------------------------------------------------------------------------------


def put_group(tx: Transaction, asked: Asked) -> ArmAnswer:
    subscription, name = asked.path["subscription"], asked.path["group"]
    groups.refuse_name(name)
    view = group_index.find(tx, subscription, name)
    document = _document(asked.body or {}, view, keeps_tags=False)
    outcome = groups.put(tx, subscription, name, document, by=asked.by)
    return (created if outcome.created else updated)(_shown(outcome.view), None, asked)


def patch_group(tx: Transaction, asked: Asked) -> ArmAnswer:
    view = find_asked(tx, asked)
    document = _document(asked.body or {}, view, keeps_tags=True)
    return ok(_shown(groups.put(tx, view.subscription, view.name, document, by=asked.by).view))


def show_group(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(_shown(find_asked(snapshot, asked)))


def check_group(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    find_asked(snapshot, asked)
    return no_content()


def list_groups(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    wanted = equalities(asked, ("tagname", "tagvalue"))
    views = (
        view
        for view in group_index.every(snapshot, asked.path["subscription"])
        if has_tag(decoded(view.declaration).get("tags", {}), wanted)
    )
    return ok(page(views, asked, lambda view: view.name.casefold(), show=_shown))


def delete_group(tx: Transaction, asked: Asked) -> ArmAnswer:
    view = find_asked(tx, asked)
    outcome = groups.drop(tx, view.subscription, view.name, context=asked.context)
    path = group_path(view.subscription, view.name)
    record = operations.open_(tx, path, "delete", outcome.event_ids, context=asked.context)
    return accepted(record, asked)


def find_asked(snapshot: Snapshot, asked: Asked) -> GroupView:
    """The group that the path names. Raises UnknownGroupError."""
    return groups.find(snapshot, asked.path["subscription"], asked.path["group"])


def listed_in(snapshot: Snapshot, asked: Asked) -> tuple[str, str | None]:
    """Subscription and group of a list; None where it is of the whole subscription.

    Raises UnknownGroupError.
    """
    group = find_asked(snapshot, asked).name if "group" in asked.path else None
    return asked.path["subscription"], group


def locations(snapshot: Snapshot, asked: Asked) -> list[str]:
    """The server's own, and wherever there are groups and VMs. Any other name is taken as well."""
    used = {view.location for view in group_index.every(snapshot, asked.path["subscription"])}
    used |= {place.location for place in snapshot.resource_groups()}
    return list(dict.fromkeys([asked.context.location, *sorted(used - {""})]))


def has_tag(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Names of tags are compared in any letter case, values are not."""
    name = wanted.get("tagname")
    if name is None:
        return "tagvalue" not in wanted or wanted["tagvalue"] in tags.values()
    found = [value for known, value in tags.items() if same(known, name)]
    return bool(found) and wanted.get("tagvalue", found[0]) == found[0]


OPERATIONS: Final[tuple[Operation, ...]] = (
    put(GROUP, put_group),
    patch(GROUP, patch_group),
    read(GROUP, show_group),
    head(GROUP, check_group),
    delete(GROUP, delete_group),
    read(f"{SUBSCRIPTION}/resourceGroups", list_groups),
)
