"""Is there an order of the operations, one at a time, that explains what every client was told and
what the store says in the end? Events are independent of each other, so each is asked alone.

An operation takes effect at one instant between its begin and its end. One of unknown outcome takes
effect at some instant after its begin, or never. (Wing and Gong's search, for objects this small.)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from tests.cluster.ledger import StoredEvent
from tests.cluster.operations import Kind, Operation, Outcome

NEVER: Final = float("inf")
ONCE: Final = frozenset({"scheduled", "approved", "started", "canceled", "completed"})


class State(StrEnum):
    ABSENT = "absent"
    SCHEDULED = "scheduled"
    STARTED = "started"
    """Or approved, and waiting for its turn: no one can cancel it by then."""
    CANCELED = "canceled"


def contradictions(operations: Iterable[Operation], events: Mapping[str, StoredEvent]) -> list[str]:
    """What can't have happened; nothing if all is well. I5, I12, I13, I18, I23, I29."""
    by_event: dict[str, list[Operation]] = {event_id: [] for event_id in events}
    for operation in operations:
        by_event.setdefault(operation.event_id, []).append(operation)
    found: list[str] = []
    for event_id, asked in by_event.items():
        event = events.get(event_id)
        found += _doubled(event) if event is not None else []
        if not _is_explained(asked, event):
            told = "\n  ".join(map(str, sorted(asked, key=lambda one: one.begun_at)))
            found.append(f"no order explains event {event_id}, which is {event} now:\n  {told}")
    return found


def check_history(operations: Iterable[Operation], events: Mapping[str, StoredEvent]) -> None:
    found = contradictions(operations, events)

    assert not found, f"{len(found)} contradictions:\n" + "\n".join(found[:20])


def _doubled(event: StoredEvent) -> Iterator[str]:
    """Transitions that an event goes through once in its life, and that the history has twice."""
    for action, count in Counter(event.actions).items():
        if action in ONCE and count > 1:
            yield f"event {event.id} was {action} {count} times: {event.actions}"
    if {"started", "canceled"} <= set(event.actions):
        yield f"event {event.id} was started and canceled: {event.actions}"


def _is_explained(operations: list[Operation], event: StoredEvent | None) -> bool:
    asked = frozenset(operations)
    if event is not None and event.start_cause not in {None, "approved"}:
        asked |= {_started_by_time(event.id)}
    # One whose client was never told its id is there, and no one is known to have asked for it.
    is_known = any(operation.kind is Kind.SCHEDULE for operation in operations)
    first = State.ABSENT if is_known or event is None else State.SCHEDULED
    return _has_order(asked, first, _final(event), set())


def _started_by_time(event_id: str) -> Operation:
    """What no client asked for. Whether it was too early, the instants in the store say."""
    return Operation(
        kind=Kind.APPROVE,
        event_id=event_id,
        outcome=Outcome.UNKNOWN,
        begun_at=-NEVER,
        ended_at=NEVER,
    )


def _final(event: StoredEvent | None) -> State:
    if event is None:
        return State.ABSENT
    match event.status:
        case "Scheduled":
            return State.STARTED if event.is_approved else State.SCHEDULED
        case "Canceled":
            return State.CANCELED
        case _:
            return State.STARTED


def _has_order(
    left: frozenset[Operation],
    state: State,
    final: State,
    failed: set[tuple[frozenset[Operation], State]],
) -> bool:
    """Whether these operations can follow on that state, and lead to the final one."""
    if (left, state) in failed:
        return False
    if state is final and all(operation.outcome is Outcome.UNKNOWN for operation in left):
        return True
    first_end = min((_end(operation) for operation in left), default=NEVER)
    for operation in left:
        if operation.begun_at > first_end:
            continue
        for after in _effects(operation, state):
            if _has_order(left - {operation}, after, final, failed):
                return True
    failed.add((left, state))
    return False


def _end(operation: Operation) -> float:
    return NEVER if operation.outcome is Outcome.UNKNOWN else operation.ended_at


def _effects(operation: Operation, state: State) -> set[State]:
    """The states that the operation can lead to; none if its answer is impossible in this one."""
    match operation.outcome:
        case Outcome.DONE:
            return _when_done(operation.kind, state)
        case Outcome.REFUSED:
            return _when_refused(operation.kind, state)
        case Outcome.UNKNOWN:
            return _when_done(operation.kind, state) | {state}


def _when_done(kind: Kind, state: State) -> set[State]:
    match kind, state:
        case Kind.SCHEDULE, State.ABSENT:
            return {State.SCHEDULED}
        case Kind.APPROVE, State.SCHEDULED:
            return {State.STARTED}
        case Kind.APPROVE, State.STARTED | State.CANCELED:
            return {state}
        case Kind.CANCEL, State.SCHEDULED:
            return {State.CANCELED}
        case _:
            return set()


def _when_refused(kind: Kind, state: State) -> set[State]:
    # An open event can be approved and canceled by whoever asks in these tests.
    is_wrong = state is State.SCHEDULED and kind is not Kind.SCHEDULE
    return set() if is_wrong else {state}
