"""What must hold whenever nothing is under way: between memory, the store, and the time."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Document
from forewarned.core.transitions import EventTransition, Transition
from forewarned.service.lifecycle.activation import MARKS
from forewarned.service.listings import EventFilter, HistoryFilter, HistoryRow, TaskFilter
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord, Saved
from tests.stateful.oracle import Oracle

_EVERYTHING: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    now: datetime
    silence: timedelta
    scopes: dict[ScopeId, Saved]
    """In the store."""
    records: dict[EventId, EventRecord]
    tasks: set[tuple[EventId, ResourceName]]
    """Of open events."""
    rows: list[HistoryRow]
    """Oldest first, from the first that was not looked at before, and one ahead of it."""
    rows_seen: int
    board: dict[ScopeId, tuple[int, Document]]
    """The revision and the document that the Board shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    scopes: dict[ScopeId, Saved]
    records: dict[EventId, EventRecord]
    tasks: set[tuple[EventId, ResourceName]]
    rows: list[HistoryRow]


def stored(snapshot: Snapshot, *, rows: int) -> Stored:
    """What the store holds, and the newest of its history."""
    return Stored(
        scopes={saved.scope.id: saved for saved in snapshot.scopes()},
        records={
            record.event.id: record for record in snapshot.events(EventFilter(limit=_EVERYTHING))
        },
        tasks={(task.event_id, task.vm) for task in snapshot.tasks(TaskFilter(limit=_EVERYTHING))},
        rows=snapshot.history(HistoryFilter(limit=rows))[::-1],
    )


def i10_a_document_is_one_committed_snapshot(oracle: Oracle, state: State) -> None:
    """The Board at a revision is the store since that revision (I25 too)."""
    assert set(state.board) == set(state.scopes)
    for scope_id, (revision, shown) in state.board.items():
        saved = state.scopes[scope_id]
        events = tuple(event for event in saved.scope.events.values() if event.announced)
        assert revision <= saved.revision, f"I10: {scope_id} is shown as of no commit"
        assert shown == Document(incarnation=saved.scope.incarnation, events=events), (
            f"I10: {shown}"
        )


def i14_what_was_told_is_stored(oracle: Oracle, state: State) -> None:
    """Whoever was answered, or heard of it, can rely on it."""
    assert set(state.scopes) == set(oracle.scopes)
    for scope_id, saved in state.scopes.items():
        told = oracle.scopes[scope_id]
        # Of reads nobody is told.
        unread = replace(told.scope, last_read_at=saved.scope.last_read_at)
        assert saved == replace(told, scope=unread), (
            "I14, I23: the store differs from what was told"
        )


def i19_every_event_has_its_record(oracle: Oracle, state: State) -> None:
    assert set(state.records) == set(oracle.lives), "I19: events without a record, or the reverse"
    for event_id, record in state.records.items():
        life = oracle.lives[event_id]
        assert record.scope_id == life.scope_id
        assert record.event == life.event, f"I19: {record.event} is not {life.event}"
        assert record.ended_at == life.ended_at, f"I19: {event_id} ended at {record.ended_at}"


def i20_nothing_is_overdue(oracle: Oracle, state: State) -> None:
    for life in oracle.waiting():
        assert life.not_before is not None
        assert state.now < life.not_before, f"I20: {life.event.id} should have started"


def i22_each_vm_of_a_started_event_has_a_task(oracle: Oracle, state: State) -> None:
    started = {
        (life.event.id, name) for life in oracle.under_way() for name in life.event.resources
    }
    assert state.tasks == started, "I22: a task too many, or one is missing"


def i28_scopes_are_on_while_somebody_reads(oracle: Oracle, state: State) -> None:
    for scope_id, saved in state.scopes.items():
        if oracle.must_be_active(scope_id, state.now, state.silence):
            assert saved.scope.active, f"I28: {scope_id} was read, and is off"
        if not oracle.may_be_active(scope_id, state.now, state.silence):
            assert not saved.scope.active, f"I28: {scope_id} is silent, and on"


def i28_the_store_knows_of_reads_within_the_hour(oracle: Oracle, state: State) -> None:
    for scope_id, reads in oracle.reads.items():
        mark = state.scopes[scope_id].scope.last_read_at
        assert mark is not None, f"I28: {scope_id} was read, and the store has never heard of it"
        assert reads.latest - state.silence / MARKS < mark <= reads.latest, f"I28: {scope_id}"


def i29_history_is_what_was_told(oracle: Oracle, state: State) -> None:
    facts = oracle.facts[state.rows_seen :]
    rows = state.rows
    if state.rows_seen:
        seen, *rows = rows
        assert _is_row_of(seen, oracle.facts[state.rows_seen - 1]), "I29: rows too many, or lost"
    assert len(rows) == len(facts), "I29: not one row for each fact"
    for row, fact in zip(rows, facts, strict=True):
        assert _is_row_of(row, fact), f"I29: {row} is not of {fact}"
        assert row.actor, f"I29: nobody did {row}"
    numbers = [row.id for row in state.rows]
    assert numbers == sorted(set(numbers)), "I29: rows out of order"


LAWS: Final = (
    i10_a_document_is_one_committed_snapshot,
    i14_what_was_told_is_stored,
    i19_every_event_has_its_record,
    i20_nothing_is_overdue,
    i22_each_vm_of_a_started_event_has_a_task,
    i28_scopes_are_on_while_somebody_reads,
    i28_the_store_knows_of_reads_within_the_hour,
    i29_history_is_what_was_told,
)


def _is_row_of(row: HistoryRow, fact: Transition) -> bool:
    event_id = fact.event.id if isinstance(fact, EventTransition) else None
    said = row.action.replace("_", "")
    return (
        said == type(fact).__name__.lower()
        and row.at == fact.at
        and row.scope_id == fact.scope_id
        and row.event_id == event_id
    )
