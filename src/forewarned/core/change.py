"""What a decision returns: the scope it leaves behind, and the facts it made true."""

from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Final

from forewarned.core.copying import replace
from forewarned.core.ids import EventId
from forewarned.core.model import Event, EventStatus, Scope
from forewarned.core.transitions import Canceled, Completed, Transition

_HIDDEN: Final = frozenset({"approval", "maintenance", "started_at", "start_cause"})
"""What no api-version shows of an event."""
_face: Final = attrgetter(*(f.name for f in fields(Event) if f.name not in _HIDDEN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    scope: Scope
    transitions: tuple[Transition, ...] = ()

    def plus(self, later: "Change") -> "Change":
        """This change and one decided on the scope it left."""
        return Change(scope=later.scope, transitions=self.transitions + later.transitions)


def published(before: Scope, change: Change) -> Change:
    """Move the incarnation if, and only if, the VMs would see something else.

    The incarnation is a promise: same number, same events. A change clients can't see must leave
    it alone, or every agent runs its hooks again.
    """
    if _shown(before) == _shown(change.scope):
        return change
    scope = replace(change.scope, incarnation=before.incarnation + 1)
    return Change(scope=scope, transitions=change.transitions)


def with_event(scope: Scope, event: Event) -> Scope:
    return replace(scope, events={**scope.events, event.id: event})


def without_event(scope: Scope, event_id: EventId) -> Scope:
    events = {other: event for other, event in scope.events.items() if other != event_id}
    return replace(scope, events=events)


def ended(scope: Scope, event: Event, *, reason: str, now: datetime) -> Change:
    """Take an event out: Completed where it has started, Canceled where it has not."""
    fact: Transition
    if event.status is EventStatus.STARTED:
        over = replace(event, status=EventStatus.COMPLETED)
        fact = Completed(scope_id=scope.id, at=now, event=over, reason=reason)
    else:
        over = replace(event, status=EventStatus.CANCELED)
        fact = Canceled(scope_id=scope.id, at=now, event=over, reason=reason)
    return Change(scope=without_event(scope, event.id), transitions=(fact,))


def _shown(scope: Scope) -> list[object]:
    return [_face(event) for event in scope.events.values() if event.announced]
