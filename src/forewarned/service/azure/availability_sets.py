"""Availability sets: declared, changed, deleted. VMs come and go by `vms`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from forewarned.core.errors import Category, RefusalError
from forewarned.core.model import Actor, Policy, ScopeKind
from forewarned.service.azure import group_index, inventory
from forewarned.service.azure.inventory import AvailabilitySetView
from forewarned.service.azure.resource_ids import ResourceId, same
from forewarned.service.fleet import placement
from forewarned.service.fleet.declaration import FAULT_DOMAINS, UPDATE_DOMAINS
from forewarned.service.ports import Transaction
from forewarned.service.records import Declaration

_OWNER: Final = "owner of availability set "


class UnknownAvailabilitySetError(RefusalError):
    category = Category.NOT_FOUND
    field = "availabilitySet"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no availability set {path}")
        self.path = path


class SetInUseError(RefusalError):
    category = Category.CONFLICT
    field = "name"

    def __init__(self, path: str, names: list[str]) -> None:
        super().__init__(f"{path} has VMs, delete them first: {', '.join(names[:10])}")
        self.path = path


class AvailabilitySetNameTakenError(RefusalError):
    """The VMs of a set share a scope, which goes by the set's name."""

    category = Category.CONFLICT
    field = "name"

    def __init__(self, name: str, path: str) -> None:
        super().__init__(
            f"an availability set {name!r} exists already: {path}."
            " Names of sets and VMs are unique in a fleet, over all resource groups"
        )
        self.name = name
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAvailabilitySet:
    document: str
    policy: Policy
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = FAULT_DOMAINS


def put(
    tx: Transaction,
    id_: ResourceId,
    revise: Callable[[AvailabilitySetView | None], WantedAvailabilitySet],
    *,
    by: Actor,
) -> tuple[AvailabilitySetView, bool]:
    """The set, and whether it is new."""
    view = inventory.availability_set(tx, id_)
    wanted = revise(view)
    scope_id = inventory.availability_scope(tx, id_.name)
    if view is None:
        group_index.require(tx, id_.subscription, id_.group)
        _refuse_taken_scope(tx, id_)
    placement.open_scope(tx, scope_id, ScopeKind.AVAILABILITY_SET, wanted.policy)
    placement.set_policy(tx, scope_id, wanted.policy, by=by)
    path = id_.path if view is None else view.id.path
    former = None if view is None else view.declaration
    created_at = tx.now if former is None else former.created_at
    tx.declare(Declaration(path=path, document=wanted.document, created_at=created_at))
    if view is None:
        tx.put_note(_OWNER + id_.name.casefold(), path)
        tx.record("declared", by=by, cause=path)
    found = inventory.availability_set(tx, id_)
    assert found is not None  # noqa: S101  # it has just been declared
    return found, view is None


def drop(tx: Transaction, id_: ResourceId, *, by: Actor) -> bool:
    """Whether there was one."""
    view = inventory.availability_set(tx, id_)
    if view is None:
        return False
    if view.machines:
        raise SetInUseError(view.id.path, [machine.name for machine in view.machines])
    tx.withdraw(view.id.path)
    tx.record("withdrawn", by=by, cause=view.id.path)
    return True


def _refuse_taken_scope(tx: Transaction, id_: ResourceId) -> None:
    owner = tx.note(_OWNER + id_.name.casefold())
    if owner is not None and not same(owner, id_.path):
        other = inventory.availability_set(tx, ResourceId.parse(owner))
        if other is not None:
            raise AvailabilitySetNameTakenError(id_.name, other.id.path)
    scope_id = inventory.availability_scope(tx, id_.name)
    if tx.exists(scope_id):
        for machine in inventory.members(tx, scope_id):
            raise AvailabilitySetNameTakenError(id_.name, inventory.resource_id(machine).group_path)
