"""Scale sets: declared, scaled, brought to a new model, deleted.

Invariants: capacity is the number of VMs that stay, so the two can't differ; an
instance number is never used twice; a model that changes touches no VM until it is brought to it.

Each function is one decision in a transaction. What a client's JSON means is for the control plane:
it hands in a function that reads the set as it is and returns what is wanted, and is pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from forewarned.core.errors import Category, RefusalError
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import Actor, EventType
from forewarned.service.azure import actions, group_index, instances, inventory, protection
from forewarned.service.azure.actions import Action
from forewarned.service.azure.context import AzureContext
from forewarned.service.azure.group_index import BeingDeletedError
from forewarned.service.azure.inventory import Machine, ScaleSetView
from forewarned.service.azure.protection import NONE
from forewarned.service.azure.resource_ids import SCALE_SETS, ResourceId, same
from forewarned.service.fleet import placement
from forewarned.service.fleet.declaration import FleetPlan, Model, ScaleSet
from forewarned.service.fleet.layout import flexible_name, uniform_name
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration

_OWNER: Final = "owner of scale set "


class SetNameTakenError(RefusalError):
    """VMs are named after their set, and no two VMs of a fleet have the same name."""

    category = Category.CONFLICT
    field = "name"

    def __init__(self, name: str, path: str) -> None:
        super().__init__(
            f"a scale set {name!r} exists already: {path}."
            " Names of sets and VMs are unique in a fleet, over all resource groups"
        )
        self.name = name
        self.path = path


class UnknownSetError(RefusalError):
    category = Category.NOT_FOUND
    field = "name"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no scale set {path}")
        self.path = path


class UnknownInstanceError(RefusalError):
    category = Category.INVALID
    field = "instanceIds"

    def __init__(self, instance_id: str, path: str) -> None:
        super().__init__(f"there is no instance {instance_id!r} in {path}")
        self.instance_id = instance_id


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSet:
    """A set as somebody wants it to be."""

    declared: ScaleSet
    """Its capacity is the number of VMs wanted."""
    location: str
    document: str
    """What to give back to whoever asks for the set."""
    model: str = ""
    """That part of the document which is the VMs' model."""
    model_changed: bool = False
    """Whether it differs from the model before; of no meaning for a new set."""
    upgrades_by_itself: bool = False
    """Whether VMs follow the model at once: upgrade policy Automatic."""
    reimaged: bool = False
    """Whether following the model means a new OS image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What bringing VMs to the latest model means."""

    model: Model
    reimaged: frozenset[ResourceName] = frozenset()
    """The VMs that get a new OS image by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOutcome:
    view: ScaleSetView
    created: bool = False
    event_ids: tuple[EventId, ...] = field(default=())
    """What the operation waits for."""


def model_path(set_path: str, revision: int) -> str:
    """Where a model is kept for as long as VMs may be on it."""
    return f"{set_path}/models/{revision}"


def find(snapshot: Snapshot, id_: ResourceId) -> ScaleSetView:
    view = inventory.scale_set(snapshot, id_)
    if view is None:
        raise UnknownSetError(id_.path)
    return view


def choose(
    snapshot: Snapshot, view: ScaleSetView, instance_ids: Sequence[str] | None
) -> list[Machine]:
    """Those with these ids, in their order; for None and for `*` all that nothing protects."""
    if instance_ids is None or "*" in instance_ids:
        return _unprotected(snapshot, view)
    by_id = {machine.instance_id.casefold(): machine for machine in view.machines}
    # Azure names VMs of a Flexible set by their names, and takes those for instances too.
    by_id |= {machine.name.casefold(): machine for machine in view.machines}
    found: dict[ResourceName, Machine] = {}
    for instance_id in instance_ids:
        machine = by_id.get(instance_id.casefold())
        if machine is None:
            raise UnknownInstanceError(instance_id, view.id.path)
        found[machine.name] = machine
    return list(found.values())


def _unprotected(snapshot: Snapshot, view: ScaleSetView) -> list[Machine]:
    """Those that what is asked of the set is for."""
    protections = protection.of_set(snapshot, view)
    return [m for m in view.machines if not protections.get(m.name, NONE).from_set_actions]


def put(
    tx: Transaction,
    id_: ResourceId,
    revise: Callable[[ScaleSetView | None], WantedSet],
    *,
    context: AzureContext,
    by: Actor,
) -> SetOutcome:
    """Create a set, or bring it to what is wanted."""
    view = inventory.scale_set(tx, id_)
    if view is not None and view.is_going:
        raise BeingDeletedError(view.id.path)
    wanted = revise(view)
    if view is None:
        group_index.require(tx, id_.subscription, id_.group)
        _refuse_taken(tx, id_)
        _withdraw(tx, id_)
    known = id_ if view is None else view.id
    declaration = _declared(tx, known, view, wanted)
    tx.declare(declaration)
    if view is None:
        tx.put_note(_OWNER + known.name.casefold(), known.path)
        tx.record("declared", by=by, cause=known.path)
    if view is None or wanted.model_changed:
        tx.declare(_model(tx, declaration, wanted.model))
    for scope_id in inventory.placement_groups(tx, known.name):
        placement.set_policy(tx, scope_id, wanted.declared.policy, by=by)
    event_ids: tuple[EventId, ...] = ()
    if view is not None and wanted.upgrades_by_itself and wanted.model_changed:
        chosen = _unprotected(tx, view)
        names = frozenset(machine.name for machine in chosen)
        upgrade = Upgrade(
            model=wanted.declared.model, reimaged=names if wanted.reimaged else frozenset()
        )
        event_ids = _upgrade(
            tx, chosen, upgrade, revision=declaration.revision, context=context, by=by
        )
    event_ids += _scale(tx, known, declaration, wanted, view, context=context, by=by)
    if view is not None and _is_met(view, declaration, wanted):
        # It was sent again, and waits for what it has brought about before.
        event_ids = _deletes_under_way(view)
    return SetOutcome(view=find(tx, known), created=view is None, event_ids=event_ids)


def upgrade(
    tx: Transaction,
    id_: ResourceId,
    instance_ids: Sequence[str] | None,
    plan: Callable[[ScaleSetView, Sequence[Machine]], Upgrade],
    *,
    context: AzureContext,
    by: Actor,
) -> SetOutcome:
    """Bring VMs to the set's latest model."""
    view = find(tx, id_)
    chosen = [m for m in choose(tx, view, instance_ids) if not view.is_latest(m)]
    event_ids = _upgrade(
        tx, chosen, plan(view, chosen), revision=view.revision, context=context, by=by
    )
    return SetOutcome(view=find(tx, id_), event_ids=event_ids)


def operate(
    tx: Transaction,
    id_: ResourceId,
    instance_ids: Sequence[str] | None,
    action: Action,
    *,
    context: AzureContext,
    by: Actor,
) -> SetOutcome:
    view = find(tx, id_)
    chosen = choose(tx, view, instance_ids)
    event_ids = actions.operate(tx, chosen, action, context=context, by=by)
    return SetOutcome(view=find(tx, id_), event_ids=event_ids)


def delete_instances(
    tx: Transaction,
    id_: ResourceId,
    instance_ids: Sequence[str] | None,
    *,
    force: bool,
    context: AzureContext,
    by: Actor,
) -> SetOutcome:
    view = find(tx, id_)
    chosen = choose(tx, view, instance_ids)
    _keep_counting(tx, view)
    event_ids = actions.remove(tx, chosen, force=force, context=context, by=by)
    return SetOutcome(view=view, event_ids=event_ids)


def drop(
    tx: Transaction, id_: ResourceId, *, force: bool, context: AzureContext, by: Actor
) -> SetOutcome | None:
    """Delete a set with its VMs; it is gone when the last of them is. None where there is none."""
    view = inventory.scale_set(tx, id_)
    if view is None:
        return None
    event_ids = actions.remove(tx, view.machines, force=force, context=context, by=by)
    tx.declare(replace(_keep_counting(tx, view), is_going=True))
    if not view.is_going:
        tx.record("withdrawn", by=by, cause=view.id.path)
    return SetOutcome(view=view, event_ids=event_ids)


def _is_met(view: ScaleSetView, declaration: Declaration, wanted: WantedSet) -> bool:
    return view.declaration == declaration and len(view.staying) == wanted.declared.capacity


def _deletes_under_way(view: ScaleSetView) -> tuple[EventId, ...]:
    events = (event for machine in view.machines for event in machine.events)
    return tuple(dict.fromkeys(e.id for e in events if e.type is EventType.TERMINATE))


# --- declarations --------------------------------------------------------------------------------


def _refuse_taken(tx: Transaction, id_: ResourceId) -> None:
    owner = tx.note(_OWNER + id_.name.casefold())
    if owner is not None and not same(owner, id_.path):
        other = inventory.scale_set(tx, ResourceId.parse(owner))
        if other is not None:
            raise SetNameTakenError(id_.name, other.id.path)
    for scope_id in inventory.placement_groups(tx, id_.name):
        for machine in inventory.members(tx, scope_id):
            profile = machine.profile
            path = ResourceId(
                subscription=profile.subscription_id,
                group=profile.resource_group,
                type=SCALE_SETS,
                name=profile.scale_set,
            ).path
            raise SetNameTakenError(id_.name, path)


def _withdraw(tx: Transaction, id_: ResourceId) -> None:
    """What is left of a set of this name that is gone."""
    tx.withdraw(id_.path)
    for left in list(tx.declarations(f"{id_.path}/")):
        tx.withdraw(left.path)


def _declared(
    tx: Transaction, id_: ResourceId, view: ScaleSetView | None, wanted: WantedSet
) -> Declaration:
    if view is None:
        return Declaration(path=id_.path, document=wanted.document, created_at=tx.now, revision=1)
    former = _counters(tx, view)
    return replace(
        former,
        document=wanted.document,
        revision=former.revision + 1 if wanted.model_changed else former.revision,
    )


def _model(tx: Transaction, declaration: Declaration, model: str) -> Declaration:
    path = model_path(declaration.path, declaration.revision)
    return Declaration(path=path, document=model, created_at=tx.now)


def _counters(tx: Transaction, view: ScaleSetView) -> Declaration:
    """The set's declaration; for one that came with the fleet, one that says nothing yet."""
    if view.declaration is not None:
        return view.declaration
    numbers = [int(m.instance_id) for m in view.machines if m.is_instance]
    number = max(numbers, default=len(view.machines) - 1) + 1
    # Others than clients of this control plane may have deleted VMs, and nobody counted then.
    while _was_used(tx, view, number):
        number += 1
    return Declaration(path=view.id.path, document="", created_at=tx.now, next_instance=number)


def _was_used(tx: Transaction, view: ScaleSetView, number: int) -> bool:
    name, _ = (
        flexible_name(view.id.name, "", number, 0)
        if view.is_flexible
        else uniform_name(view.id.name, "", number)
    )
    return any(
        tx.history(HistoryFilter(scope_id=scope_id, resource=ResourceName(name), limit=1))
        for scope_id in inventory.placement_groups(tx, view.id.name)
    )


def _keep_counting(tx: Transaction, view: ScaleSetView) -> Declaration:
    """Before VMs go: their numbers must not be given to others."""
    declaration = _counters(tx, view)
    tx.declare(declaration)
    return declaration


# --- VMs -----------------------------------------------------------------------------------------


def _scale(
    tx: Transaction,
    id_: ResourceId,
    declaration: Declaration,
    wanted: WantedSet,
    view: ScaleSetView | None,
    *,
    context: AzureContext,
    by: Actor,
) -> tuple[EventId, ...]:
    staying = () if view is None else view.staying
    more = wanted.declared.capacity - len(staying)
    if more > 0 or view is None:
        where = FleetPlan(
            location=wanted.location, resource_group=id_.group, subscription_id=id_.subscription
        )
        instances.grow(
            tx,
            wanted.declared,
            where,
            first=declaration.next_instance,
            more=max(more, 0),
            revision=declaration.revision,
            context=context,
            by=by,
        )
        tx.declare(replace(declaration, next_instance=declaration.next_instance + max(more, 0)))
        return ()
    if more < 0:
        protections = protection.of_set(tx, view)
        held = {name for name, each in protections.items() if each.outlives_scale_in}
        protection.refuse_too_small(id_.name, staying, held, wanted=wanted.declared.capacity)
        chosen = instances.scale_in(staying, -more, protected=held)
        return actions.remove(tx, chosen, force=False, context=context, by=by)
    return ()


def _upgrade(
    tx: Transaction,
    machines: Sequence[Machine],
    upgrade: Upgrade,
    *,
    revision: int,
    context: AzureContext,
    by: Actor,
) -> tuple[EventId, ...]:
    reimaged = [machine for machine in machines if machine.name in upgrade.reimaged]
    event_ids = actions.operate(tx, reimaged, Action.REIMAGE, context=context, by=by)
    for machine in machines:
        instances.bring_to(tx, machine, upgrade.model, revision=revision, by=by)
    return event_ids
