"""What operators can do from the console, each by the use case that the control API calls.

Made over a rehearsal, the same actions tell what would happen.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple, TypeVar

from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import Actor
from forewarned.service.azure import actions, group_index, groups, inventory, scale_sets
from forewarned.service.azure.actions import Action
from forewarned.service.azure.context import AzureContext
from forewarned.service.azure.inventory import ScaleSetView, VmView
from forewarned.service.azure.models.documents import InvalidPropertyError
from forewarned.service.azure.models.scale_set import declared_set
from forewarned.service.azure.models.set_changes import ScaleSetChange
from forewarned.service.azure.resource_ids import ResourceId
from forewarned.service.azure.scale_sets import SetNameTakenError, SetOutcome
from forewarned.service.engine import Engine
from forewarned.service.events.schedule import Scheduler
from forewarned.service.ports import Transaction
from forewarned.service.records import EventRecord

T = TypeVar("T")


class SetAction(NamedTuple):
    """What was done to a scale set."""

    before: ScaleSetView | None
    """None where it has been made."""
    after: ScaleSetView
    made_group: str
    """The resource group that was made for it; empty where none was."""
    terminate_notice: timedelta | None
    """Of the set's latest model; None where instances are deleted without notice."""
    events: list[EventRecord]


Caused = list[EventRecord] | SetAction
"""The events that an action caused, and what else it did."""


class Actions:
    def __init__(
        self,
        engine: Engine,
        scheduler: Scheduler,
        new_context: Callable[[Actor], AzureContext],
    ) -> None:
        self._engine = engine
        self.scheduler = scheduler
        self._new_context = new_context

    async def decide(self, action: Callable[[Transaction, AzureContext], T], *, by: Actor) -> T:
        """Do one of the actions below. Its context is made before its transaction."""
        context = self._new_context(by)
        return await self._engine.decide(lambda tx: action(tx, context))


def operate(
    tx: Transaction, names: Sequence[str], action: Action, *, context: AzureContext
) -> list[EventRecord]:
    """Restart, redeploy, evict."""
    vms = [_vm(tx, name) for name in names]
    return _records(tx, actions.operate(tx, vms, action, context=context))


def delete(tx: Transaction, names: Sequence[str], *, context: AzureContext) -> list[EventRecord]:
    """Delete VMs; of those in scale sets, their numbers are not used again."""
    vms = [_vm(tx, name) for name in names]
    alone = [vm for vm in vms if not vm.profile.scale_set]
    event_ids = actions.remove(tx, alone, force=False, context=context)
    for id_, members in _by_set(vms).items():
        outcome = scale_sets.delete_instances(
            tx, scale_sets.find(tx, id_), members, force=False, context=context
        )
        event_ids += outcome.event_ids
    return _records(tx, event_ids)


def create_set(
    tx: Transaction, id_: ResourceId, change: ScaleSetChange, *, context: AzureContext
) -> SetAction:
    """Raises InvalidPropertyError, and SetNameTakenError for one that exists."""
    found = inventory.scale_set(tx, id_)
    if found is not None:
        raise SetNameTakenError(id_.name, found.id.path)
    outcome = scale_sets.create(tx, id_, change.document(), context=context)
    return _set_action(tx, None, outcome)


def create_set_and_group(
    tx: Transaction, id_: ResourceId, change: ScaleSetChange, *, context: AzureContext
) -> SetAction:
    """As `create_set`, in a resource group that is made for it."""
    known = group_index.find(tx, id_.subscription, id_.group)
    if known is not None:
        message = f"a resource group {known.name!r} already exists: choose that one"
        raise InvalidPropertyError("resourceGroupName", message)
    groups.create(tx, id_.subscription, id_.group, location=context.location, by=context.by)
    return create_set(tx, id_, change, context=context)._replace(made_group=id_.group)


def change_set(
    tx: Transaction, id_: ResourceId, change: ScaleSetChange, *, context: AzureContext
) -> SetAction:
    """Raises InvalidPropertyError, and UnknownSetError for one that does not exist."""
    before = scale_sets.find(tx, id_)
    return _set_action(
        tx, before, scale_sets.change(tx, before, change.document(), context=context)
    )


def upgrade_set(tx: Transaction, id_: ResourceId, *, context: AzureContext) -> SetAction:
    """Bring all instances to the latest model."""
    before = scale_sets.find(tx, id_)
    return _set_action(tx, before, scale_sets.upgrade(tx, before, None, context=context))


def _vm(tx: Transaction, name: str) -> VmView:
    found = inventory.by_name(tx, name)
    if found is None:
        raise UnknownResourceError(ResourceName(name))
    return found


def _by_set(vms: Iterable[VmView]) -> dict[ResourceId, list[str]]:
    found: dict[ResourceId, list[str]] = {}
    for vm in vms:
        if vm.profile.scale_set:
            found.setdefault(inventory.scale_set_id(vm.profile), []).append(vm.name)
    return found


def _records(tx: Transaction, event_ids: Iterable[EventId]) -> list[EventRecord]:
    records = (tx.event(event_id) for event_id in event_ids)
    return [record for record in records if record is not None]


def _set_action(tx: Transaction, before: ScaleSetView | None, outcome: SetOutcome) -> SetAction:
    notice = declared_set(outcome.view).model.terminate_notice
    return SetAction(before, outcome.view, "", notice, _records(tx, outcome.event_ids))
