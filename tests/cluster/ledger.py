"""Every operation that was answered as done is found again in the store: I14, I23.

The store is asked itself, by SQL. A node could remember what the store has lost.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.operations import Kind, Operation, Outcome

# Any: rows of a query. Each caller knows what they hold.
Ask = Callable[[str], list[Any]]

_EVENTS: Final = "SELECT id, status, approved_at IS NOT NULL, start_cause FROM events"
_HISTORY: Final = "SELECT event_id, action FROM history WHERE event_id IS NOT NULL ORDER BY id"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    id: str
    status: str
    is_approved: bool
    start_cause: str | None
    actions: tuple[str, ...]
    """What has happened to it, oldest first: one word a transition."""


def stored_events(ask: Ask) -> dict[str, StoredEvent]:
    actions: dict[str, list[str]] = {}
    for event_id, action in ask(_HISTORY):
        actions.setdefault(event_id, []).append(action)
    return {
        event_id: StoredEvent(
            id=event_id,
            status=status,
            is_approved=is_approved,
            start_cause=start_cause,
            actions=tuple(actions.get(event_id, ())),
        )
        for event_id, status, is_approved, start_cause in ask(_EVENTS)
    }


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
