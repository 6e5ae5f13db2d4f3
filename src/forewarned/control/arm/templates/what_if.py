"""What a deployment would do, resource by resource, as `az deployment group what-if` prints it.

It is no guess: the deployment is made inside of a transaction that is then given up, and what is
there before is compared with what is there afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import listing
from forewarned.control.arm.templates.execution import look, make
from forewarned.control.arm.templates.template import Planned
from forewarned.service.azure.models.documents import Json, without
from forewarned.service.ports import Snapshot, Transaction

_NOT_FORETOLD: Final = (
    "etag",
    "properties.provisioningState",
    "properties.timeCreated",
    "properties.uniqueId",
    "properties.vmId",
)
"""What templates do not decide: ids that are given on creation, and transient states."""


class ChangeType(StrEnum):
    CREATE = "Create"
    MODIFY = "Modify"
    NO_CHANGE = "NoChange"
    IGNORE = "Ignore"
    """It is in the group and not in the template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Of one resource."""

    path: str
    before: Json | None
    after: Json | None

    @property
    def type(self) -> ChangeType:
        if self.after is None:
            return ChangeType.IGNORE
        if self.before is None:
            return ChangeType.CREATE
        return ChangeType.NO_CHANGE if self.before == self.after else ChangeType.MODIFY

    def shown(self, *, ids_alone: bool) -> Json:
        shown: Json = {"resourceId": self.path, "changeType": self.type}
        if ids_alone:
            return shown
        if self.before is not None:
            shown["before"] = self.before
        if self.after is not None:
            shown["after"] = self.after
        if self.type is ChangeType.MODIFY:
            shown["delta"] = list(_differences(self.before or {}, self.after or {}))
        return shown


def forecast(tx: Transaction, asked: Asked, planned: list[Planned]) -> list[Difference]:
    """What becomes of the template's resources. The transaction has to be given up in any case.

    Raises ArmError and RefusalError.
    """
    before = [_looked_at(tx, asked, each) for each in planned]
    make(tx, asked, planned)
    return [
        Difference(path=each.path, before=had, after=_looked_at(tx, asked, each))
        for each, had in zip(planned, before, strict=True)
    ]


def ignored(snapshot: Snapshot, asked: Asked, planned: list[Planned]) -> list[Difference]:
    """What is in the group and not in the template. There may be very much of it."""
    subscription, group = asked.path["subscription"], asked.path["group"]
    named = {each.path.casefold() for each in planned}
    return [
        Difference(path=each["id"], before=each, after=None)
        for each in listing.in_group(snapshot, subscription, group)
        if each["id"].casefold() not in named
    ]


def _looked_at(snapshot: Snapshot, asked: Asked, planned: Planned) -> Json | None:
    found = look(snapshot, asked, planned)
    if found is None:
        return None
    return {**without(found, *_NOT_FORETOLD), "apiVersion": planned.api_version}


def _differences(before: Json, after: Json, *, path: str = "") -> Iterator[Json]:
    for name in sorted(before.keys() | after.keys()):
        where = f"{path}.{name}" if path else name
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, path=where)
        else:
            yield _difference(where, old, new)


def _difference(path: str, old: Any, new: Any) -> Json:  # JSON
    kind = "Create" if old is None else "Delete" if new is None else "Modify"
    return {"path": path, "propertyChangeType": kind, "before": old, "after": new, "children": None}
