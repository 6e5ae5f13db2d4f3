"""What operators can do from the console, each by the use case that the control API calls.

Made over a rehearsal, the same actions tell what would happen.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

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
        """A context is for one action, and made before its transaction."""
        self._engine = engine
        self.scheduler = scheduler
        self._new_context = new_context

    async def operate(
        self, names: Sequence[str], action: Action, *, by: Actor
    ) -> list[EventRecord]:
        """Restart, redeploy, evict."""
        context = self._new_context(by)

        def work(tx: Transaction) -> list[EventRecord]:
            vms = [_vm(tx, name) for name in names]
            return _records(tx, actions.operate(tx, vms, action, context=context))

        return await self._engine.decide(work)

    async def delete(self, names: Sequence[str], *, by: Actor) -> list[EventRecord]:
        """Delete VMs; of those in scale sets, their numbers are not used again."""
        context = self._new_context(by)

        def work(tx: Transaction) -> list[EventRecord]:
            vms = [_vm(tx, name) for name in names]
            alone = [vm for vm in vms if not vm.profile.scale_set]
            event_ids = actions.remove(tx, alone, force=False, context=context)
            for id_, members in _by_set(vms).items():
                outcome = scale_sets.delete_instances(
                    tx, scale_sets.find(tx, id_), members, force=False, context=context
                )
                event_ids += outcome.event_ids
            return _records(tx, event_ids)

        return await self._engine.decide(work)

    async def create_set(self, id_: ResourceId, change: ScaleSetChange, *, by: Actor) -> SetAction:
        """Raises InvalidPropertyError, and SetNameTakenError for one that exists."""
        context = self._new_context(by)

        def work(tx: Transaction) -> SetAction:
            return _created(tx, id_, change, context=context)

        return await self._engine.decide(work)

    async def create_set_and_group(
        self, id_: ResourceId, change: ScaleSetChange, *, by: Actor
    ) -> SetAction:
        """As `create_set`, in a resource group that is made for it."""
        context = self._new_context(by)

        def work(tx: Transaction) -> SetAction:
            known = group_index.find(tx, id_.subscription, id_.group)
            if known is not None:
                message = f"a resource group {known.name!r} already exists: choose that one"
                raise InvalidPropertyError("resourceGroupName", message)
            groups.create(tx, id_.subscription, id_.group, location=context.location, by=by)
            return _created(tx, id_, change, context=context)._replace(made_group=id_.group)

        return await self._engine.decide(work)

    async def change_set(self, id_: ResourceId, change: ScaleSetChange, *, by: Actor) -> SetAction:
        """Raises InvalidPropertyError, and UnknownSetError for one that does not exist."""
        context = self._new_context(by)

        def work(tx: Transaction) -> SetAction:
            before = scale_sets.find(tx, id_)
            outcome = scale_sets.change(tx, before, change.document(), context=context)
            return _set_action(tx, before, outcome)

        return await self._engine.decide(work)

    async def upgrade_set(self, id_: ResourceId, *, by: Actor) -> SetAction:
        """Bring all instances to the latest model."""
        context = self._new_context(by)

        def work(tx: Transaction) -> SetAction:
            before = scale_sets.find(tx, id_)
            outcome = scale_sets.upgrade(tx, before, None, context=context)
            return _set_action(tx, before, outcome)

        return await self._engine.decide(work)


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


def _created(
    tx: Transaction, id_: ResourceId, change: ScaleSetChange, *, context: AzureContext
) -> SetAction:
    found = inventory.scale_set(tx, id_)
    if found is not None:
        raise SetNameTakenError(id_.name, found.id.path)
    outcome = scale_sets.create(tx, id_, change.document(), context=context)
    return _set_action(tx, None, outcome)


def _set_action(tx: Transaction, before: ScaleSetView | None, outcome: SetOutcome) -> SetAction:
    notice = declared_set(outcome.view).model.terminate_notice
    return SetAction(before, outcome.view, "", notice, _records(tx, outcome.event_ids))
