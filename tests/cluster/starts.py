"""Starts as operations: no client asks for one, so its begin and its end follow from what was seen.

It took effect after the event was last seen Scheduled, and before it was first seen Started. One by
time has no right to take effect before NotBefore, one by approval none before an approval began.

Only the store's own answers count as seen: a VM's document may be some milliseconds behind it, and
one Scheduled there would prove nothing.
"""

from collections.abc import Collection, Iterator
from typing import Final

from tests.cluster.ledger import StoredEvent
from tests.cluster.operations import NEVER, Kind, Operation, Outcome, Sighting

TOLERANCE: Final = 0.05
"""Seconds by which the wall clock may have been set while a test ran."""
LATEST: Final = 5.0
"""Seconds after NotBefore: I20."""
_AFTER_A_START: Final = frozenset({"Started", "Completed"})


def start_of(
    event_id: str,
    asked: Collection[Operation],
    sightings: Collection[Sighting],
    event: StoredEvent | None,
) -> Operation | None:
    """The start of an event; None if neither the store nor anyone knows of one."""
    seen = [one.answered_at for one in sightings if one.status in _AFTER_A_START]
    is_stored = event is not None and "started" in event.actions
    if not seen and not is_stored:
        return None
    cause = (event.start_cause if event is not None else None) or ""
    before = [one.asked_at for one in sightings if one.status == "Scheduled"]
    return Operation(
        kind=Kind.START,
        event_id=event_id,
        outcome=Outcome.DONE,
        begun_at=max([*before, _earliest(cause, asked) - TOLERANCE]),
        # In the store, at the latest, which is read when all else has ended.
        ended_at=min(seen, default=NEVER),
        cause=cause,
    )


def wrong_starts(
    asked: Collection[Operation], event: StoredEvent, start: Operation | None
) -> Iterator[str]:
    """Lost ones, early ones, and those of which the history says something else. I1, I5, I20."""
    has_started = event.status in _AFTER_A_START
    if has_started != ("started" in event.actions):
        yield f"event {event.id} is {event.status}, and its history is {event.actions}"
    if event.status == "Scheduled":
        yield from _overdue(event)
    if start is None:
        return
    earliest = _earliest(start.cause, asked)
    known_at = min(start.ended_at, NEVER if event.started_at is None else event.started_at)
    if earliest == NEVER:
        yield f"event {event.id} started ({start.cause}), and no one asked for that"
    elif known_at < earliest - TOLERANCE:
        early = f"{earliest - known_at:.3f} s early"
        yield f"event {event.id} started ({start.cause or 'no cause'}), {early}"


def fallen_back(asked: Collection[Operation], sightings: Collection[Sighting]) -> Iterator[str]:
    """An event that was seen Scheduled though all knew that it was not. I18."""
    over = min(
        [
            one.ended_at
            for one in asked
            if one.kind in {Kind.APPROVE, Kind.CANCEL} and one.outcome is Outcome.DONE
        ]
        + [one.answered_at for one in sightings if one.status != "Scheduled"],
        default=NEVER,
    )
    for one in sightings:
        if one.status == "Scheduled" and one.asked_at > over:
            yield f"{one}, and it was over at {over:.3f}"


def _overdue(event: StoredEvent) -> Iterator[str]:
    if event.is_approved:
        yield f"event {event.id} is approved, and has not started"
    elif event.not_before is not None and event.not_before + LATEST < event.read_at:
        late = event.read_at - event.not_before
        yield f"event {event.id} has not started, {late:.3f} s after its NotBefore"


def _earliest(cause: str, asked: Collection[Operation]) -> float:
    """The first instant at which a start of this cause is right."""
    match cause:
        case "approved":
            return min((one.begun_at for one in asked if _may_approve(one)), default=NEVER)
        case "not_before":
            promised = [one.not_before for one in asked if one.kind is Kind.SCHEDULE]
            return max(promised, default=NEVER)
        case _:
            # Of no cause that this traffic gives: whether anything explains it, the order says.
            return -NEVER


def _may_approve(operation: Operation) -> bool:
    return operation.kind is Kind.APPROVE and operation.outcome is not Outcome.REFUSED
