"""Availability sets: declared, changed, deleted. `vms` adds and removes their VMs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from forewarned.core.errors import Category, RefusalError
from forewarned.core.model import Actor, ScopeKind
from forewarned.service.azure import enrollment, group_index, inventory
from forewarned.service.azure.context import AzureContext
from forewarned.service.azure.inventory import AvailabilitySetView
from forewarned.service.azure.models.availability_set import (
    DeclaredAvailabilitySet,
    declared_availability_set,
    revised_availability_set,
)
from forewarned.service.azure.models.documents import encoded
from forewarned.service.azure.resource_ids import ResourceId, same
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration

_OWNER: Final = "owner of availability set "


class UnknownAvailabilitySetError(
    RefusalError, category=Category.NOT_FOUND, field="availabilitySet"
):
    def __init__(self, path: str) -> None:
        super().__init__(f"there is no availability set {path}")
        self.path = path


class SetInUseError(RefusalError, category=Category.CONFLICT, field="name"):
    def __init__(self, path: str, names: list[str]) -> None:
        super().__init__(f"{path} still has VMs; delete them first: {', '.join(names[:10])}")
        self.path = path


class AvailabilitySetNameTakenError(RefusalError, category=Category.CONFLICT, field="name"):
    """The VMs of a set share a scope, which goes by the set's name."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(
            f"an availability set {name!r} already exists: {path}."
            " Names of sets and VMs are unique in a fleet, across all resource groups"
        )
        self.name = name
        self.path = path


def find(snapshot: Snapshot, id_: ResourceId) -> AvailabilitySetView:
    view = inventory.availability_set(snapshot, id_)
    if view is None:
        raise UnknownAvailabilitySetError(id_.path)
    return view


def put(
    tx: Transaction, id_: ResourceId, sent: Mapping[str, Any], *, context: AzureContext
) -> AvailabilitySetView:
    """Create a set, or change it. `sent` is a resource of ARM, or a part of one.

    Raises InvalidPropertyError, PropertyChangeError.
    """
    view = inventory.availability_set(tx, id_)
    if view is None:
        return _create(tx, id_, sent, context=context)
    return change(tx, view, sent, context=context)


def change(
    tx: Transaction, view: AvailabilitySetView, sent: Mapping[str, Any], *, context: AzureContext
) -> AvailabilitySetView:
    former = declared_availability_set(view)
    declared = revised_availability_set(former, sent, name=view.id.name, location=context.location)
    return _declare(tx, view.id, declared, former=view.declaration, by=context.by)


def _create(
    tx: Transaction, id_: ResourceId, sent: Mapping[str, Any], *, context: AzureContext
) -> AvailabilitySetView:
    group = group_index.require(tx, id_.subscription, id_.group)
    known = replace(id_, group=group.name)
    declared = revised_availability_set(
        None, sent, name=known.name, location=group.location or context.location
    )
    _refuse_taken(tx, known)
    view = _declare(tx, known, declared, former=None, by=context.by)
    tx.put_note(_OWNER + known.name.casefold(), known.path)
    tx.record("declared", by=context.by, cause=known.path)
    return view


def _declare(
    tx: Transaction,
    id_: ResourceId,
    declared: DeclaredAvailabilitySet,
    *,
    former: Declaration | None,
    by: Actor,
) -> AvailabilitySetView:
    scope_id = inventory.availability_scope(tx, id_.name)
    enrollment.open_scope(tx, scope_id, ScopeKind.AVAILABILITY_SET, declared.policy)
    enrollment.set_policy(tx, scope_id, declared.policy, by=by)
    created_at = tx.now if former is None else former.created_at
    document = encoded(declared.document)
    tx.declare(Declaration(path=id_.path, document=document, created_at=created_at))
    return find(tx, id_)


def drop(tx: Transaction, id_: ResourceId, *, by: Actor) -> bool:
    """Whether there was one."""
    view = inventory.availability_set(tx, id_)
    if view is None:
        return False
    if view.vms:
        raise SetInUseError(view.id.path, [vm.name for vm in view.vms])
    tx.withdraw(view.id.path)
    tx.record("withdrawn", by=by, cause=view.id.path)
    return True


def _refuse_taken(tx: Transaction, id_: ResourceId) -> None:
    owner = tx.note(_OWNER + id_.name.casefold())
    if owner is not None and not same(owner, id_.path):
        other = inventory.availability_set(tx, ResourceId.parse(owner))
        if other is not None:
            raise AvailabilitySetNameTakenError(id_.name, other.id.path)
    scope_id = inventory.availability_scope(tx, id_.name)
    if tx.exists(scope_id):
        for vm in inventory.members(tx, scope_id):
            raise AvailabilitySetNameTakenError(id_.name, inventory.resource_id(vm).group_path)
