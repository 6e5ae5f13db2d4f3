"""Makes the resources of a template, each by what its own `PUT` calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from forewarned.control.arm.compute import (
    availability_sets,
    images,
    scale_set_views,
    scale_sets,
    virtual_machines,
    vm_views,
)
from forewarned.control.arm.errors import bad_request
from forewarned.control.arm.network import network
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import declared
from forewarned.control.arm.resources.declared import Kind
from forewarned.control.arm.templates.template import Planned
from forewarned.core.ids import EventId
from forewarned.service.azure import availability_sets as sets
from forewarned.service.azure import groups, inventory
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import AVAILABILITY_SETS, MACHINES, SCALE_SETS, same
from forewarned.service.ports import Snapshot, Transaction

_KINDS: Final = {kind.type.casefold(): kind for kind in (*network.KINDS, *images.KINDS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a template's resources have become, to be looked at by its outputs."""

    paths: list[str] = field(default_factory=list)
    by_name: dict[str, Callable[[], Json | None]] = field(default_factory=dict)
    """By all that they can be called, in folded letters."""
    event_ids: list[EventId] = field(default_factory=list)
    """What making them waits for: a set that gets smaller gives its VMs notice."""

    def get(self, name: str) -> Mapping[str, Any] | None:
        show = self.by_name.get(name.casefold())
        return None if show is None else show()


def make(tx: Transaction, asked: Asked, planned: list[Planned]) -> Made:
    """Raises ArmError and RefusalError: then the transaction has to be given up."""
    made = Made()
    for each in planned:
        version = each.api_version or asked.api_version
        made.event_ids.extend(_make(tx, replace(asked, api_version=version), each))
        made.paths.append(each.path)
        for name in each.names:
            made.by_name[name] = partial(look, tx, asked, each)
    return made


def look(snapshot: Snapshot, asked: Asked, planned: Planned) -> Json | None:
    """The resource as its own `GET` shows it; None where it is not there (yet)."""
    type_ = planned.type.casefold()
    if type_ == SCALE_SETS.casefold():
        view = inventory.scale_set(snapshot, asked.id_of(SCALE_SETS, planned.name))
        return None if view is None else scale_set_views.show_set(view)
    if type_ == MACHINES.casefold():
        vm = inventory.virtual_machine(snapshot, asked.id_of(MACHINES, planned.name))
        return None if vm is None else vm_views.shown(snapshot, vm)
    if type_ == AVAILABILITY_SETS.casefold():
        id_ = asked.id_of(AVAILABILITY_SETS, planned.name)
        found = inventory.availability_set(snapshot, id_)
        return None if found is None else availability_sets.shown(found)
    kind, part = _kept_as(planned)
    whole, _, name = planned.name.partition("/")
    stored = groups.declared(snapshot, asked.id_of(kind.type, whole))
    if stored is None:
        return None
    shown = declared.show(snapshot, kind, stored)
    if not part:
        return shown
    parts: list[Json] = shown["properties"][part]
    return next((each for each in parts if same(each["name"], name)), None)


def _make(tx: Transaction, asked: Asked, planned: Planned) -> tuple[EventId, ...]:
    """The events that it causes."""
    type_ = planned.type.casefold()
    if type_ == SCALE_SETS.casefold():
        id_ = asked.id_of(SCALE_SETS, planned.name)
        return scale_sets.put_in(tx, asked, id_, planned.body).event_ids
    if type_ == MACHINES.casefold():
        id_ = asked.id_of(MACHINES, planned.name)
        return virtual_machines.put_in(tx, asked, id_, planned.body).event_ids
    if type_ == AVAILABILITY_SETS.casefold():
        id_ = asked.id_of(AVAILABILITY_SETS, planned.name)
        sets.put(tx, id_, planned.body, context=asked.context)
        return ()
    kind, part = _kept_as(planned)
    whole, _, name = planned.name.partition("/")
    if part:
        declared.put_part_in(tx, kind, asked.id_of(kind.type, whole), (part, name), planned.body)
    else:
        declared.put_in(tx, kind, asked.id_of(kind.type, planned.name), planned.body)
    return ()


def _kept_as(planned: Planned) -> tuple[Kind, str]:
    """The kind, and the list of it that the resource is in; empty where it is whole by itself."""
    type_ = planned.type.casefold()
    kind = _KINDS.get(type_)
    if kind is not None:
        return kind, ""
    whole, _, part = type_.rpartition("/")
    kind = _KINDS.get(whole)
    spelled = {each.casefold(): each for each in (kind.parts if kind else ())}
    if kind is not None and part in spelled:
        return kind, spelled[part]
    served = sorted([SCALE_SETS, MACHINES, AVAILABILITY_SETS, *(k.type for k in _KINDS.values())])
    raise bad_request(
        "InvalidTemplateDeployment",
        f"The resource '{planned.name[:100]}' is of type '{planned.type[:200]}', which this "
        f"server does not support. It supports {', '.join(served)}.",
    )
