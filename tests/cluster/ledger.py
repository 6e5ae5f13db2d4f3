"""Every operation that was answered as done is found again in the store: I14, I23.

The store is asked itself, by SQL. A node could remember what the store has lost.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.operations import Kind, Operation, Outcome, monotonic_of

# Any: rows of a query. Each caller knows what they hold.
Ask = Callable[[str], list[Any]]

# One statement, so one snapshot: an event may fall due while it is asked. Both databases know it.
_EVENTS: Final = """
    SELECT events.id, status, description, approved_at IS NOT NULL, start_cause, not_before,
           started_at, action
    FROM events LEFT JOIN history ON history.event_id = events.id
    ORDER BY events.id, history.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """Instants are on the monotonic clock."""

    id: str
    status: str
    description: str
    is_approved: bool
    start_cause: str | None
    not_before: float | None
    """None once it has started."""
    started_at: float | None
    """By the clock of the store, in the transaction that started it."""
    actions: tuple[str, ...]
    """What has happened to it, oldest first: one word a transition."""
    read_at: float
    """The store was asked then."""


def stored_events(ask: Ask) -> dict[str, StoredEvent]:
    read_at = time.monotonic()
    # Those of an event differ only in what has happened to it.
    rows = itertools.groupby(ask(_EVENTS), key=lambda row: tuple(row[:-1]))
    return {
        event_id: StoredEvent(
            id=event_id,
            status=status,
            description=description,
            is_approved=bool(is_approved),
            start_cause=start_cause,
            not_before=_instant(not_before),
            started_at=_instant(started_at),
            actions=tuple(row[-1] for row in its if row[-1] is not None),
            read_at=read_at,
        )
        for (
            event_id,
            status,
            description,
            is_approved,
            start_cause,
            not_before,
            started_at,
        ), its in rows
    }


def _instant(microseconds: int | None) -> float | None:
    return None if microseconds is None else monotonic_of(microseconds / 1_000_000)


def lost(operations: Iterable[Operation], events: Mapping[str, StoredEvent]) -> list[Operation]:
    """Those that were answered as done, and of which the store knows nothing."""
    return [
        operation
        for operation in operations
        if operation.outcome is Outcome.DONE
        and not _is_kept(operation.kind, events.get(operation.event_id))
    ]


def check_ledger(operations: Iterable[Operation], events: Mapping[str, StoredEvent]) -> None:
    missing = lost(operations, events)

    assert not missing, f"{len(missing)} lost:\n" + "\n".join(map(str, missing[:20]))


def _is_kept(kind: Kind, event: StoredEvent | None) -> bool:
    if event is None:
        return False
    match kind:
        case Kind.SCHEDULE:
            return "scheduled" in event.actions
        case Kind.APPROVE:
            # Approving what has started or ended is answered 200 and changes nothing: I12, I13.
            return event.status != "Scheduled" or event.is_approved
        case Kind.CANCEL:
            return "canceled" in event.actions
        case Kind.START:
            return "started" in event.actions
