"""Makes the resources of a template, each by what its own `PUT` calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from notbefore.control.arm import (
    availability_sets,
    images,
    kept,
    machine_views,
    network,
    scale_set_views,
    scale_sets,
    virtual_machines,
)
from notbefore.control.arm.errors import bad_request
from notbefore.control.arm.kept import Kind
from notbefore.control.arm.requests import Asked, Json
from notbefore.control.arm.services import ArmServices
from notbefore.control.arm.templates import Planned
from notbefore.core.ids import EventId
from notbefore.service import inventory
from notbefore.service.ports import Transaction
from notbefore.service.resource_ids import AVAILABILITY_SETS, MACHINES, SCALE_SETS, ResourceId

_KINDS: Final = {kind.type.casefold(): kind for kind in (*network.KINDS, *images.KINDS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a template's resources have become, to be looked at by its outputs."""

    paths: list[str] = field(default_factory=list)
    by_name: dict[str, Callable[[], Json]] = field(default_factory=dict)
    """By all that they can be called, in folded letters."""
    event_ids: list[EventId] = field(default_factory=list)
    """What making them waits for: a set that gets smaller gives its VMs notice."""

    def get(self, name: str) -> Mapping[str, Any] | None:
        show = self.by_name.get(name.casefold())
        return None if show is None else show()


def make(tx: Transaction, services: ArmServices, asked: Asked, planned: list[Planned]) -> Made:
    """Raises ArmError and RefusalError: then the transaction has to be given up."""
    made = Made()
    subscription, group = asked.path["subscription"], asked.path["group"]
    for each in planned:
        version = each.api_version or asked.api_version
        show = _make(tx, services, replace(asked, api_version=version), each, made.event_ids)
        made.paths.append(each.path(subscription, group))
        for name in each.names(subscription, group):
            made.by_name[name] = show
    return made


def _make(
    tx: Transaction,
    services: ArmServices,
    asked: Asked,
    planned: Planned,
    event_ids: list[EventId],
) -> Callable[[], Json]:
    """How to show what was made. Adds the events it causes."""
    type_ = planned.type.casefold()
    if type_ == SCALE_SETS.casefold():
        id_ = asked.id_of(SCALE_SETS, planned.name)
        version = asked.api_version
        _, outcome = scale_sets.put_in(
            tx, services, id_, planned.body, api_version=version, by=asked.by
        )
        event_ids += outcome.event_ids
        return lambda: scale_set_views.show_set(scale_sets.find(tx, id_))
    if type_ == MACHINES.casefold():
        return _machine(tx, services, asked, planned)
    if type_ == AVAILABILITY_SETS.casefold():
        return _availability_set(tx, services, asked, planned)
    kind = _KINDS.get(type_)
    if kind is not None:
        id_ = asked.id_of(kind.type, planned.name)
        kept.put_in(tx, kind, id_, planned.body)
        return partial(_kept, tx, kind, id_)
    whole, _, part = type_.rpartition("/")
    kind = _KINDS.get(whole)
    spelled = {each.casefold(): each for each in (kind.parts if kind else ())}
    if kind is not None and part in spelled:
        parent, _, name = planned.name.partition("/")
        id_ = asked.id_of(kind.type, parent)
        kept.put_part_in(tx, kind, id_, (spelled[part], name), planned.body)
        return partial(_part, tx, kind, id_, (spelled[part], name))
    raise bad_request(
        "InvalidTemplateDeployment",
        f"The resource '{planned.name[:100]}' is of type '{planned.type[:200]}', which this server"
        f" does not have. It has {', '.join(_served())}.",
    )


def _machine(
    tx: Transaction, services: ArmServices, asked: Asked, planned: Planned
) -> Callable[[], Json]:
    id_ = asked.id_of(MACHINES, planned.name)
    outcome = virtual_machines.put_in(tx, services, asked, id_, planned.body)

    def show() -> Json:
        path = inventory.resource_id(outcome.machine).path
        return machine_views.shown(outcome.machine, tx.declaration(path))

    return show


def _availability_set(
    tx: Transaction, services: ArmServices, asked: Asked, planned: Planned
) -> Callable[[], Json]:
    id_ = asked.id_of(AVAILABILITY_SETS, planned.name)
    view = availability_sets.put_in(tx, services, asked, id_, planned.body)
    return partial(availability_sets.shown, view)


def _kept(tx: Transaction, kind: Kind, id_: ResourceId) -> Json:
    found = kept.find(tx, id_)
    assert found is not None  # noqa: S101  # it was made in this transaction
    return kept.show(tx, kind, found)


def _part(tx: Transaction, kind: Kind, id_: ResourceId, where: tuple[str, str]) -> Json:
    part, name = where
    parts: list[Json] = _kept(tx, kind, id_)["properties"][part]
    return next(each for each in parts if each["name"].casefold() == name.casefold())


def _served() -> list[str]:
    kinds = [kind.type for kind in _KINDS.values()]
    return sorted([SCALE_SETS, MACHINES, AVAILABILITY_SETS, *kinds])
