"""Which resource groups there are: declared ones, and those that VMs of the fleet are in."""

from dataclasses import dataclass
from typing import Final

from forewarned.core.errors import Category, RefusalError
from forewarned.service.azure.models.profiles import stored_location
from forewarned.service.azure.resource_ids import group_path, same
from forewarned.service.ports import Snapshot
from forewarned.service.records import Declaration, GroupPlace

_DEPTH: Final = group_path("s", "g").count("/")


class BeingDeletedError(RefusalError, category=Category.CONFLICT, field="name"):
    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is being deleted: wait until it is gone")
        self.path = path


class UnknownGroupError(RefusalError, category=Category.NOT_FOUND, field="resourceGroup"):
    def __init__(self, name: str) -> None:
        super().__init__(f"Resource group '{name}' could not be found.")
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    subscription: str
    name: str
    location: str
    """As it is declared; else where VMs of it are."""
    declaration: Declaration | None


def require(snapshot: Snapshot, subscription: str, name: str) -> GroupView:
    """Raises UnknownGroupError, and BeingDeletedError for a group that is being deleted."""
    view = find(snapshot, subscription, name)
    if view is None:
        raise UnknownGroupError(name)
    if view.declaration is not None and view.declaration.is_going:
        raise BeingDeletedError(view.declaration.path)
    return view


def find(snapshot: Snapshot, subscription: str, name: str) -> GroupView | None:
    """Does not look at VMs if the group is declared: every create asks, and VMs may be many."""
    declaration = snapshot.declaration(group_path(subscription, name))
    if declaration is not None and not declaration.is_going:
        return _view(subscription, declaration, None)
    place = _places(snapshot, subscription).get(name.casefold())
    return None if place is None else _view(subscription, declaration, place)


def every(snapshot: Snapshot, subscription: str) -> list[GroupView]:
    """Declared ones and those that VMs are in, by name."""
    places = _places(snapshot, subscription)
    declared = {
        _last(each.path).casefold(): each
        for each in snapshot.declarations(group_path(subscription, ""))
        if each.path.count("/") == _DEPTH
    }
    return [
        _view(subscription, declared.get(name), places.get(name))
        for name in sorted({*places, *declared})
        if name in places or not declared[name].is_going
    ]


def _places(snapshot: Snapshot, subscription: str) -> dict[str, GroupPlace]:
    """The groups that VMs are in, by case-folded name."""
    found: dict[str, GroupPlace] = {}
    for place in snapshot.resource_groups():
        if same(place.subscription_id, subscription):
            found.setdefault(place.name.casefold(), place)
    return found


def _view(
    subscription: str, declaration: Declaration | None, place: GroupPlace | None
) -> GroupView:
    """At least one of the two is not None."""
    name = "" if place is None else place.name
    location = stored_location(declaration)
    return GroupView(
        subscription=subscription,
        name=name if declaration is None else _last(declaration.path),
        location=location or ("" if place is None else place.location),
        declaration=declaration,
    )


def _last(path: str) -> str:
    return path.rpartition("/")[2]
