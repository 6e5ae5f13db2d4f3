"""What has been seen of the product, kept as plainly as can be: the other opinion on what is true.

Nothing here calls a decision of the core. Facts come from commits as they are told, in order; what
follows from them is worked out anew, in the simplest way there is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forewarned.core.ids import EventId, MaintenanceId, ScopeId
from forewarned.core.model import Approval, Event, EventStatus, EventType, Scope
from forewarned.core.transitions import (
    Canceled,
    Completed,
    EventTransition,
    MaintenancePlanned,
    Started,
    Transition,
)
from forewarned.service.lifecycle.activation import MARKS
from forewarned.service.records import Commit, Saved


@dataclass(slots=True, kw_only=True)
class Life:
    """One event, from what has been told of it."""

    scope_id: ScopeId
    event: Event
    """As the last fact about it left it."""
    born_at: datetime
    not_before: datetime | None
    """As first promised."""
    facts: list[EventTransition] = field(default_factory=list)
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def status(self) -> EventStatus:
        return self.event.status

    @property
    def approval(self) -> Approval | None:
        return self.event.approval

    @property
    def is_waiting(self) -> bool:
        return self.status is EventStatus.SCHEDULED

    @property
    def is_under_way(self) -> bool:
        return self.status is EventStatus.STARTED

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def is_shown(self) -> bool:
        return self.event.announced and not self.is_over

    def is_ready(self, at: datetime) -> bool:
        """Whether nobody need be asked any more."""
        return (
            not self.is_waiting
            or not self.event.announced
            or self.approval is not None
            or (self.not_before is not None and self.not_before <= at)
        )

    def times(self, fact: type[EventTransition]) -> int:
        return sum(isinstance(each, fact) for each in self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the Board showed of a scope in one api-version."""

    tag: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One commit, as a listener heard of it."""

    commit: Commit
    heard_at: datetime
    before: Mapping[ScopeId, Saved]
    """The scopes it changed, as they were told before. New ones are missing."""
    shown: Mapping[tuple[ScopeId, str], Shown]
    """What VMs read from then on, by scope and api-version."""

    @property
    def starts(self) -> list[Started]:
        return [fact for fact in self.commit.transitions if isinstance(fact, Started)]

    def scope_before(self, scope_id: ScopeId) -> Scope | None:
        saved = self.before.get(scope_id)
        return None if saved is None else saved.scope


@dataclass(slots=True, kw_only=True)
class Reads:
    """When a scope was last read, as far as the server may know."""

    earliest: datetime
    """What the end of a server has left of that knowledge, at least."""
    latest: datetime


class Oracle:
    def __init__(self, now: datetime) -> None:
        self.up_since = now
        self.lives: dict[EventId, Life] = {}
        self.scopes: dict[ScopeId, Saved] = {}
        self.facts: list[Transition] = []
        self.reads: dict[ScopeId, Reads] = {}
        self.rounds: set[EventId] = set()
        """Events of a set's maintenance: they follow one another and wait for no other scope."""
        self.short_events: set[EventId] = set()
        self.short_work: set[MaintenanceId] = set()
        """What was asked for with less than the minimum notice, and granted."""

    # --- what happened -----------------------------------------------------------------------

    def learn(self, moment: Moment) -> None:
        for saved in moment.commit.scopes:
            self.scopes[saved.scope.id] = saved
        for fact in moment.commit.transitions:
            self.facts.append(fact)
            if isinstance(fact, MaintenancePlanned):
                self.rounds.update(fact.event_ids)
            if isinstance(fact, EventTransition):
                self._learn_of_event(fact)

    def read(self, scope_id: ScopeId, at: datetime) -> None:
        self.reads[scope_id] = Reads(earliest=at, latest=at)

    def began_again(self, back_at: datetime, silence: timedelta) -> None:
        """Reads since the store was last told of one are forgotten."""
        self.up_since = back_at
        for reads in self.reads.values():
            reads.earliest = reads.latest - silence / MARKS

    def _learn_of_event(self, fact: EventTransition) -> None:
        event = fact.event
        life = self.lives.get(event.id)
        if life is None:
            life = self.lives[event.id] = Life(
                scope_id=fact.scope_id,
                event=event,
                born_at=fact.at,
                not_before=event.not_before,
            )
        life.event = event
        life.facts.append(fact)
        if isinstance(fact, Started):
            life.started_at = fact.at
        if isinstance(fact, Completed | Canceled):
            life.ended_at = fact.at

    # --- what follows ------------------------------------------------------------------------

    def settled_at(self, instant: datetime) -> datetime:
        """What fell due until then has been seen to by this instant: here at once."""
        return instant

    def of_scope(self, scope_id: ScopeId) -> Iterator[Life]:
        return (life for life in self.lives.values() if life.scope_id == scope_id)

    def shown_in(self, scope_id: ScopeId) -> list[Life]:
        return [life for life in self.of_scope(scope_id) if life.is_shown]

    def parts_of_same_work(self, life: Life) -> list[Life]:
        """The other events of the maintenance of one host."""
        work = life.event.maintenance
        if work is None or life.event.id in self.rounds:
            return []
        return [
            other
            for other in self.lives.values()
            if other is not life and other.event.maintenance == work
        ]

    def holders(self, life: Life, at: datetime) -> list[Life]:
        """The events that must be approved, or due, before this one starts early."""
        held_by = [part for part in self.parts_of_same_work(life) if not part.is_ready(at)]
        if life.event.type is EventType.TERMINATE and life.event.announced:
            held_by += [
                other
                for other in self.of_scope(life.scope_id)
                if other is not life
                and other.event.type is EventType.TERMINATE
                and other.is_waiting
                and other.not_before is not None
                and life.not_before is not None
                and other.not_before <= life.not_before
                and not other.is_ready(at)
            ]
        return held_by

    def must_be_active(self, scope_id: ScopeId, now: datetime, silence: timedelta) -> bool:
        reads = self.reads.get(scope_id)
        return reads is not None and now - reads.earliest < silence

    def may_be_active(self, scope_id: ScopeId, now: datetime, silence: timedelta) -> bool:
        reads = self.reads.get(scope_id)
        return reads is not None and now - reads.latest < silence

    def waiting(self) -> list[Life]:
        return [life for life in self.lives.values() if life.is_waiting]

    def under_way(self) -> list[Life]:
        return [life for life in self.lives.values() if life.is_under_way]

    def over(self) -> list[Life]:
        return [life for life in self.lives.values() if life.is_over]

    def next_not_before(self) -> datetime | None:
        return min((life.not_before for life in self.waiting() if life.not_before), default=None)

    def vms(self, scope_id: ScopeId | None = None) -> list[str]:
        """The VMs there are now, of one scope or of all."""
        return [
            str(name)
            for saved in self.scopes.values()
            if scope_id in {None, saved.scope.id}
            for name in saved.scope.resources
        ]

    def hosts(self) -> list[str]:
        return sorted(
            {
                str(vm.host)
                for saved in self.scopes.values()
                for vm in saved.scope.resources.values()
            }
        )
