"""Resource groups, and what is declared in them that no VM is part of (networks, deployments)."""

import re
from dataclasses import replace
from typing import Final

from forewarned.core.ids import EventId
from forewarned.core.model import Actor
from forewarned.service.azure import actions, group_index, inventory, scale_sets
from forewarned.service.azure.context import AzureContext, Outcome
from forewarned.service.azure.group_index import BeingDeletedError, GroupView, UnknownGroupError
from forewarned.service.azure.models.documents import InvalidPropertyError, encoded
from forewarned.service.azure.resource_ids import ResourceId, group_path
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration

GroupOutcome = Outcome[GroupView]

_NAME: Final = re.compile(r"[\w.()-]{0,89}[\w()-]")


def find(snapshot: Snapshot, subscription: str, name: str) -> GroupView:
    view = group_index.find(snapshot, subscription, name)
    if view is None:
        raise UnknownGroupError(name)
    return view


def put(tx: Transaction, subscription: str, name: str, document: str, *, by: Actor) -> GroupOutcome:
    view = group_index.find(tx, subscription, name)
    path = group_path(subscription, name if view is None else view.name)
    former = None if view is None else view.declaration
    if former is not None and former.is_going:
        raise BeingDeletedError(former.path)
    created_at = tx.now if former is None else former.created_at
    tx.declare(Declaration(path=path, document=document, created_at=created_at))
    if view is None:
        # What was declared in a group of this name went with it.
        for left in list(tx.declarations(f"{path}/")):
            tx.withdraw(left.path)
        tx.record("declared", by=by, cause=path)
    return Outcome(view=find(tx, subscription, name), created=view is None)


def create(
    tx: Transaction, subscription: str, name: str, *, location: str, by: Actor
) -> GroupOutcome:
    """A group without tags."""
    refuse_name(name)
    document = encoded({"location": location, "tags": {}})
    return put(tx, subscription, name, document, by=by)


def refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidPropertyError(
            "resourceGroupName",
            f"The resource group name '{name[:100]}' is invalid: expected 1 to 90 letters, digits,"
            " periods, underscores, hyphens and parentheses, and no period at the end.",
        )


def drop(tx: Transaction, subscription: str, name: str, *, context: AzureContext) -> GroupOutcome:
    """Delete a group with all that is in it; it is gone when its last VM is."""
    view = find(tx, subscription, name)
    event_ids: tuple[EventId, ...] = ()
    for each in list(inventory.scale_sets(tx, subscription, name)):
        outcome = scale_sets.drop(tx, each.id, force=False, context=context)
        event_ids += () if outcome is None else outcome.event_ids
    vms = [
        *inventory.virtual_machines(tx, subscription, name),
        *inventory.roles(tx, subscription, name),
    ]
    event_ids += actions.remove(tx, vms, force=False, context=context)
    path = group_path(subscription, view.name)
    if not event_ids:
        for declaration in list(tx.declarations(f"{path}/")):
            tx.withdraw(declaration.path)
    former = view.declaration or Declaration(path=path, document="", created_at=tx.now)
    if not former.is_going:
        tx.record("withdrawn", by=context.by, cause=path)
    tx.declare(replace(former, is_going=True))
    return Outcome(view=view, event_ids=tuple(dict.fromkeys(event_ids)))


def declared(snapshot: Snapshot, id_: ResourceId) -> Declaration | None:
    """None also for a resource whose group was deleted."""
    if group_index.find(snapshot, id_.subscription, id_.group) is None:
        return None
    return snapshot.declaration(id_.path)


def declare(tx: Transaction, id_: ResourceId, document: str) -> Declaration:
    """Store what a client declares of a resource that is neither a VM nor a set."""
    group_index.require(tx, id_.subscription, id_.group)
    former = tx.declaration(id_.path)
    declaration = Declaration(
        path=id_.path if former is None else former.path,
        document=document,
        created_at=tx.now if former is None else former.created_at,
    )
    tx.declare(declaration)
    return declaration
