"""Is there an order of the operations, one at a time, that explains what every client was told and
what the store says in the end? Events are independent of each other, so each is asked alone.

An operation takes effect at one instant between its begin and its end. One of unknown outcome takes
effect at some instant after its begin, or never. (Wing and Gong's search, for objects this small.)
A schedule makes one event if it was answered, at most one if not, and no event comes from nowhere:
each request has a mark of its own, which is the description of what it makes.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from tests.cluster.ledger import StoredEvent
from tests.cluster.operations import NEVER, Kind, Operation, Outcome, Sighting
from tests.cluster.starts import fallen_back, start_of, wrong_starts

ONCE: Final = frozenset({"scheduled", "approved", "started", "canceled", "completed"})


class State(StrEnum):
    ABSENT = "absent"
    SCHEDULED = "scheduled"
    APPROVED = "approved"
    STARTED = "started"
    CANCELED = "canceled"


def contradictions(
    operations: Collection[Operation],
    events: Mapping[str, StoredEvent],
    sightings: Iterable[Sighting] = (),
) -> list[str]:
    """What can't have happened; nothing if all is well. I1, I5, I12, I13, I18, I20, I23, I29."""
    made = _by_mark(events)
    by_event: dict[str, list[Operation]] = {event_id: [] for event_id in events}
    for operation in operations:
        known = [operation.event_id] if operation.event_id else made.get(operation.mark, [])
        for event_id in known:
            by_event.setdefault(event_id, []).append(operation)
    seen: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        seen[sighting.event_id].append(sighting)
    found = [*_wrong_schedules(operations, made)]
    for event_id, asked in by_event.items():
        found += _contradictions_of(event_id, asked, seen[event_id], events.get(event_id))
    return found


def check_history(
    operations: Collection[Operation],
    events: Mapping[str, StoredEvent],
    sightings: Iterable[Sighting] = (),
) -> None:
    found = contradictions(operations, events, sightings)

    assert not found, f"{len(found)} contradictions:\n" + "\n".join(found[:20])


def _by_mark(events: Mapping[str, StoredEvent]) -> dict[str, list[str]]:
    made: dict[str, list[str]] = defaultdict(list)
    for event in events.values():
        made[event.description].append(event.id)
    return made


def _wrong_schedules(
    operations: Iterable[Operation], made: Mapping[str, list[str]]
) -> Iterator[str]:
    """Requests that made no event though they were answered, or two, and events of no request."""
    schedules = [operation for operation in operations if operation.kind is Kind.SCHEDULE]
    for schedule in schedules:
        ids = made.get(schedule.mark, [])
        match schedule.outcome:
            case Outcome.DONE:
                is_right = ids == [schedule.event_id]
            case Outcome.UNKNOWN:
                is_right = len(ids) <= 1
            case Outcome.REFUSED:
                is_right = not ids
        if not is_right:
            yield f"{schedule} made {len(ids)} events: {', '.join(ids) or 'it is lost'}"
    marks = {schedule.mark for schedule in schedules}
    for mark, ids in made.items():
        if mark not in marks:
            yield f"no one asked for {', '.join(ids)}, marked {mark!r}"


def _contradictions_of(
    event_id: str,
    asked: Collection[Operation],
    sightings: Collection[Sighting],
    event: StoredEvent | None,
) -> Iterator[str]:
    start = start_of(event_id, asked, sightings, event)
    if event is not None:
        yield from _doubled(event)
        yield from wrong_starts(asked, event, start)
    yield from fallen_back(asked, sightings)
    all_of_it = frozenset(asked) | ({start} if start is not None else frozenset())
    if not _has_order(all_of_it, State.ABSENT, _final(event), set()):
        told = "\n  ".join(map(str, sorted(all_of_it, key=lambda one: one.begun_at)))
        yield f"no order explains event {event_id}, which is {event} now:\n  {told}"


def _doubled(event: StoredEvent) -> Iterator[str]:
    """Transitions that an event goes through once in its life, and that the history has twice."""
    for action, count in Counter(event.actions).items():
        if action in ONCE and count > 1:
            yield f"event {event.id} was {action} {count} times: {event.actions}"
    if {"started", "canceled"} <= set(event.actions):
        yield f"event {event.id} was started and canceled: {event.actions}"


def _final(event: StoredEvent | None) -> State:
    if event is None:
        return State.ABSENT
    match event.status:
        case "Scheduled":
            return State.APPROVED if event.is_approved else State.SCHEDULED
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
            if after is state and operation.outcome is Outcome.UNKNOWN:
                # It may just as well be left to the end. A client that asks for a minute has many.
                continue
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
            return _when_done(operation, state)
        case Outcome.REFUSED:
            return _when_refused(operation.kind, state)
        case Outcome.UNKNOWN:
            return _when_done(operation, state) | {state}


def _when_done(operation: Operation, state: State) -> set[State]:
    match operation.kind, state:
        case Kind.SCHEDULE, State.ABSENT:
            return {State.SCHEDULED}
        case Kind.APPROVE, State.SCHEDULED:
            return {State.APPROVED}
        case Kind.APPROVE, State.APPROVED | State.STARTED | State.CANCELED:
            return {state}
        case Kind.CANCEL, State.SCHEDULED:
            return {State.CANCELED}
        # What is approved when it is due already starts by time.
        case Kind.START, State.APPROVED if operation.cause in {"approved", "not_before"}:
            return {State.STARTED}
        case Kind.START, State.SCHEDULED if operation.cause == "not_before":
            return {State.STARTED}
        case _:
            return set()


def _when_refused(kind: Kind, state: State) -> set[State]:
    # An open event can be approved and canceled by whoever asks in these tests.
    is_wrong = state is State.SCHEDULED and kind is not Kind.SCHEDULE
    return set() if is_wrong else {state}
