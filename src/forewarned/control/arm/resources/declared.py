"""Resources that are stored as they are declared, and shown again: networks, images.

Nothing in the fleet depends on them. They are here because clients look them up before they create
a VM, and after.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from forewarned.control.arm.errors import invalid_parameter, not_found
from forewarned.service.azure import group_index
from forewarned.service.azure.groups import declare, declared
from forewarned.service.azure.groups import find as find_group
from forewarned.service.azure.models.documents import Fields, Json, decoded, encoded, without
from forewarned.service.azure.models.profiles import new_tags, read_location
from forewarned.service.azure.resource_ids import ResourceId, group_path, same
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,78}[A-Za-z0-9_])?")
_DERIVED: Final = ("id", "name", "type", "etag", "properties.provisioningState")

Look = Callable[[Json, ResourceId], None]
"""Adds to a document what follows from elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One type of resource. Most are there only because they were declared."""

    type: str
    """In Azure's spelling: `Microsoft.Network/virtualNetworks`."""
    parts: tuple[str, ...] = ()
    """Lists under `properties` whose items are resources with paths of their own."""

    def looking(self, _: Snapshot) -> Look:
        """Made once for all documents of an answer."""
        return lambda _, __: None

    def implied(self, _: Snapshot, __: ResourceId) -> Declaration | None:
        """A resource that is there because others are, as it would have been declared."""
        return None

    def implied_paths(self, _: Snapshot, __: str, ___: str | None) -> Iterable[str]:
        """Of all such in a subscription or a group, and of those that were declared since."""
        return ()


# --- in a transaction ----------------------------------------------------------------------------


def put_in(tx: Transaction, kind: Kind, id_: ResourceId, body: Mapping[str, Any]) -> bool:
    """Store what a client sent in place of what it sent before; True if it is new.

    Raises InvalidPropertyError, and UnknownGroupError.
    """
    _refuse_name(id_.name)
    fields = Fields(body)
    properties = fields.object("properties")
    for name in kind.parts:
        for part in properties.objects(name):
            part.object("properties")
            _refuse_name(part.text("name") or "")
    document = without(body, *_DERIVED)
    document["tags"] = new_tags(fields)
    view = find_group(tx, id_.subscription, id_.group)
    document["location"] = read_location(fields) or view.location
    is_new = look_up(tx, kind, id_) is None
    declare(tx, replace(id_, group=view.name), encoded(document))
    return is_new


def look_up(snapshot: Snapshot, kind: Kind, id_: ResourceId) -> Declaration | None:
    """What was declared, or what is there without it."""
    return declared(snapshot, id_) or kind.implied(snapshot, id_)


def show(snapshot: Snapshot, kind: Kind, declaration: Declaration) -> Json:
    return shower(snapshot, kind)(declaration)


def shower(snapshot: Snapshot, kind: Kind) -> Callable[[Declaration], Json]:
    look = kind.looking(snapshot)

    def shown(declaration: Declaration) -> Json:
        id_ = ResourceId.parse(declaration.path)
        if not declaration.document:
            declaration = look_up(snapshot, kind, id_) or declaration
        document = decoded(declaration)
        properties: Json = {**(document.get("properties") or {}), "provisioningState": "Succeeded"}
        for name in kind.parts:
            properties[name] = [_part(id_, kind, name, part) for part in properties.get(name) or ()]
        result = {
            **document,
            "id": id_.path,
            "name": id_.name,
            "type": kind.type,
            "properties": properties,
        }
        look(result, id_)
        return result

    return shown


def _part(id_: ResourceId, kind: Kind, name: str, part: Json) -> Json:
    properties = {**(part.get("properties") or {}), "provisioningState": "Succeeded"}
    path = f"{id_.path}/{name}/{part['name']}"
    return {**part, "id": path, "type": f"{kind.type}/{name}", "properties": properties}


def put_part_in(
    tx: Transaction, kind: Kind, id_: ResourceId, where: tuple[str, str], body: Mapping[str, Any]
) -> bool:
    """Put one item, by list and name, in its place; whether it is new."""
    part, name = where
    _refuse_name(name)
    Fields(body).object("properties")
    document, parts = parts_of(tx, kind, id_, part)
    new = {**without(body, *_DERIVED, "location", "tags"), "name": name}
    is_new = not any(same(each["name"], name) for each in parts)
    kept = [new if same(each["name"], name) else each for each in parts]
    document["properties"][part] = [*kept, new] if is_new else kept
    put_in(tx, kind, id_, document)
    return is_new


def parts_of(snapshot: Snapshot, kind: Kind, id_: ResourceId, part: str) -> tuple[Json, list[Json]]:
    """The document and one list of it. Raises ArmError where there is no such resource."""
    declaration = look_up(snapshot, kind, id_)
    if declaration is None:
        raise not_found(
            "ParentResourceNotFound",
            f"The resource '{id_.path}' that this resource belongs to was not found.",
        )
    document = decoded(declaration)
    document["properties"] = dict(document.get("properties") or {})
    return document, list(document["properties"].get(part) or ())


def _refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise invalid_parameter(
            "name",
            f"The resource name '{name[:100]}' is invalid: expected 1 to 80 letters, digits,"
            " periods, underscores and hyphens, beginning with a letter or digit.",
        )


def every(
    snapshot: Snapshot, kind: Kind, subscription: str, group: str | None
) -> list[Declaration]:
    here = [group] if group else [view.name for view in group_index.every(snapshot, subscription)]
    stored = [
        declaration
        for name in here
        for declaration in snapshot.declarations(
            f"{group_path(subscription, name)}/providers/{kind.type}/"
        )
        if declaration.path.count("/") == _DEPTH
    ]
    known = {each.path.casefold() for each in stored}
    # Without their documents: a page shows few of them.
    return stored + [
        Declaration(path=path, document="", created_at=snapshot.now)
        for path in kind.implied_paths(snapshot, subscription, group)
        if path.casefold() not in known
    ]


_DEPTH: Final = ResourceId(subscription="s", group="g", type="n/t", name="n").path.count("/")
