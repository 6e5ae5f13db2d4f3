"""What tests of stores do over and over."""

from forewarned.core.change import Change
from forewarned.core.ids import ScopeId
from forewarned.core.model import Actor, Scope
from forewarned.core.transitions import Transition
from forewarned.service.listings import EventFilter, HistoryFilter, TaskFilter
from forewarned.service.ports import Snapshot, Store, Transaction
from forewarned.service.records import Commit, Saved
from forewarned.service.subscriptions.model import DeliveryFilter
from tests.builders import NOON, OPERATOR, emptied


def settle_in(tx: Transaction, scope: Scope) -> None:
    """Create the scope, and save what is in it."""
    tx.create(emptied(scope))
    tx.save(Change(scope=scope), by=OPERATOR)


def save_in(tx: Transaction, scope: Scope, *facts: Transition, by: Actor = OPERATOR) -> None:
    """Load the scope, and save this instead."""
    tx.load(scope.id)
    tx.save(Change(scope=scope, transitions=facts), by=by)


async def keep(store: Store, *scopes: Scope) -> Commit:
    def decision(tx: Transaction) -> None:
        for scope in scopes:
            settle_in(tx, scope)

    _, commit = await store.transact(decision)
    return commit


async def save(store: Store, scope: Scope, *facts: Transition, by: Actor = OPERATOR) -> Commit:
    _, commit = await store.transact(lambda tx: save_in(tx, scope, *facts, by=by))
    return commit


async def load(store: Store, scope_id: str = "scope1") -> Scope:
    return await store.read(lambda snapshot: snapshot.load(ScopeId(scope_id)))


async def cache(store: Store) -> list[Saved]:
    return await store.read(lambda snapshot: list(snapshot.scopes()))


def everything(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        list(snapshot.scopes()),
        list(snapshot.bindings()),
        snapshot.events(EventFilter()),
        snapshot.history(HistoryFilter()),
        snapshot.tasks(TaskFilter()),
        snapshot.drains(),
        snapshot.subscriptions(),
        snapshot.subscription_health(now=NOON),
        snapshot.deliveries(DeliveryFilter()),
        snapshot.note("fleet"),
        snapshot.next_wake(),
        snapshot.scope_ids(""),
        snapshot.scope_ids("SCOPE1"),
        snapshot.resource_groups(),
        list(snapshot.declarations("")),
        [snapshot.operation(known) for known in ("op1", "op2")],
    )
