"""What a client may rely on once its order was granted: how to see that it is still true.

Each is a question to the oracle, which holds what was committed and is compared with the store.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forewarned.core.ids import EventId, ResourceName
from forewarned.core.tasks import Task
from forewarned.core.transitions import (
    ResourceAdded,
    ResourceRemoved,
    ResourceTransition,
    VmsTransition,
)
from forewarned.service.fleet.writes import Applied
from forewarned.service.records import EventRecord
from tests.stateful.oracle import Life, Oracle

IsKept = Callable[[Oracle], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    at: int
    """How long the ledger's log was when the client heard of it."""
    is_kept: IsKept


def approved(event_id: EventId) -> IsKept:
    """The event is approved, or needs no approval any more."""

    def is_kept(oracle: Oracle) -> bool:
        life = oracle.lives.get(event_id)
        return life is not None and (life.approval is not None or not life.is_waiting)

    return is_kept


def scheduled(records: Sequence[EventRecord], *, of: Sequence[ResourceName]) -> IsKept:
    """There is an event for each VM that the order named."""
    named = {name for record in records for name in record.event.resources}
    is_whole = named.issuperset(of)
    return lambda oracle: is_whole and _are_there(oracle, records)


def planned(records: Sequence[EventRecord]) -> IsKept:
    """The events of the answer are there."""
    return lambda oracle: _are_there(oracle, records)


def canceled(records: Sequence[EventRecord], event_id: EventId) -> IsKept:
    is_whole = any(record.event.id == event_id and record.ended_at for record in records)
    return lambda oracle: is_whole and _are_there(oracle, records)


def noted(task: Task, fact: type[VmsTransition]) -> IsKept:
    """What was ordered for a task is in the event's history."""

    def is_kept(oracle: Oracle) -> bool:
        life = oracle.lives.get(task.event_id)
        facts = () if life is None else life.facts
        return any(isinstance(each, fact) and task.vm in each.vms for each in facts)

    return is_kept


def applied(done: Applied, *, since: int) -> IsKept:
    """VMs were added and removed, as the answer says; `since` is the number of facts before."""
    added, removed = set(done.added), set(done.removed)

    def is_kept(oracle: Oracle) -> bool:
        facts = [each for each in oracle.facts[since:] if isinstance(each, ResourceTransition)]
        came = {each.resource for each in facts if isinstance(each, ResourceAdded)}
        left = {each.resource for each in facts if isinstance(each, ResourceRemoved)}
        return added <= came and removed <= left

    return is_kept


def _are_there(oracle: Oracle, records: Sequence[EventRecord]) -> bool:
    return all(_has_come_as_far(oracle.lives.get(each.event.id), each) for each in records)


def _has_come_as_far(life: Life | None, record: EventRecord) -> bool:
    if life is None or life.scope_id != record.scope_id or life.event.type is not record.event.type:
        return False
    if record.ended_at is not None:
        return life.ended_at == record.ended_at
    return life.status is record.event.status or not life.is_waiting
