"""Histories of one scope, as hypothesis finds them: what people, VMs, hosts and time may do to it.

An act picks its victims by number from what is there, so every act makes sense in every state. One
that the rules turn down happened to nobody: it leaves no chapter.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from hypothesis import strategies as st
from typing_extensions import override

from forewarned.core import lifecycle, maintenance
from forewarned.core.change import Change
from forewarned.core.errors import RefusalError
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    EvictionPolicy,
    Policy,
    Priority,
    Scope,
)
from forewarned.core.rules import Rules
from tests.builders import DAY, MINUTE, NOON, OPERATOR, SECOND, a_resource, a_scope
from tests.core.builders_core import a_new_event, fresh_ids, some_work

Name = TypeVar("Name", bound=str)

RULES: Final = Rules(short_notice_allowed=True)
SHORT_NOTICE: Final = 5 * SECOND
UPDATE_DOMAIN: Final = {
    "vm1": 0,
    "vm2": 0,
    "vm3": 1,
    "vm4": 1,
    "vm5": 2,
    "vm6": 2,
    "spot1": 2,
    "spot2": 2,
}
TYPES: Final = st.sampled_from(EventType)
MAINTAINABLE: Final = st.sampled_from([EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY])
DEALLOCATE: Final = EvictionPolicy.DEALLOCATE
NUMBERS: Final = st.integers(min_value=0, max_value=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """What one act made of a scope."""

    now: datetime
    before: Scope
    change: Change

    @property
    def after(self) -> Scope:
        return self.change.scope


class Act(ABC):
    @abstractmethod
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        """Raises a RefusalError where the rules turn it down."""


@dataclass(frozen=True)
class Schedule(Act):
    type: EventType
    source: EventSource
    first: int
    count: int
    short_notice: timedelta | None

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        names = list(scope.resources)[self.first :][: self.count]
        new = a_new_event(
            next(ids),
            type=self.type,
            source=self.source,
            resources=names,
            notice=self.short_notice,
            short_notice=self.short_notice is not None,
        )
        return lifecycle.schedule(scope, new, rules=RULES, now=now)


@dataclass(frozen=True)
class Delete(Act):
    """A scale-in: one Terminate for each of these VMs, all in one instant."""

    first: int
    count: int

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        change = Change(scope=scope)
        for name in list(scope.resources)[self.first :][: self.count]:
            new = a_new_event(next(ids), type=EventType.TERMINATE, resources=[name])
            change = change.plus(lifecycle.schedule(change.scope, new, rules=RULES, now=now))
        return change


@dataclass(frozen=True)
class Approve(Act):
    numbers: Sequence[int]

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        open_ones = _with_status(scope, EventStatus.SCHEDULED) or list(scope.events)
        chosen = [an_id for number in self.numbers for an_id in _pick(open_ones, number)]
        change = lifecycle.approve(scope, chosen, by=OPERATOR, rules=RULES, now=now)
        for work in _works(change.scope):
            [begun] = maintenance.settle_work([change.scope], work, now=now)
            change = change.plus(begun)
        return change


@dataclass(frozen=True)
class Cancel(Act):
    number: int

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        for event_id in _pick(list(scope.events), self.number):
            return lifecycle.cancel(scope, event_id, reason="", now=now)
        return Change(scope=scope)


@dataclass(frozen=True)
class CarryOut(Act):
    """The whole of it, on one of the events that have started."""

    number: int

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        for event_id in _pick(_with_status(scope, EventStatus.STARTED), self.number):
            change = lifecycle.interrupt(scope, event_id, now=now)
            change = change.plus(lifecycle.restore(change.scope, event_id, now=now))
            return change.plus(lifecycle.complete(change.scope, event_id, now=now))
        return Change(scope=scope)


@dataclass(frozen=True)
class Remove(Act):
    number: int

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        for name in _pick(list(scope.resources), self.number):
            return lifecycle.remove(scope, ResourceName(name.swapcase()), now=now)
        return Change(scope=scope)


@dataclass(frozen=True)
class MaintainHost(Act):
    host: int
    type: EventType

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        [change] = maintenance.maintain_host(
            [scope],
            HostName(f"host{self.host}"),
            some_work(f"work on a host at {now}", type=self.type),
            event_ids=ids,
            rules=RULES,
            now=now,
        )
        return change


@dataclass(frozen=True)
class MaintainSet(Act):
    type: EventType

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        work = some_work(f"work on the set at {now}", type=self.type)
        return maintenance.maintain_set(scope, work, event_ids=ids, rules=RULES, now=now)


@dataclass(frozen=True)
class FailHost(Act):
    host: int

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        host = HostName(f"host{self.host}")
        [change] = maintenance.fail_host(
            [scope], host, description="", event_ids=ids, rules=RULES, now=now
        )
        return change


@dataclass(frozen=True)
class Read(Act):
    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        return lifecycle.read(scope, at=now)


@dataclass(frozen=True)
class Wake(Act):
    """At the first NotBefore, where there is one to come."""

    @override
    def on(self, scope: Scope, ids: Iterator[EventId], now: datetime) -> Change:
        return lifecycle.wake(scope, rules=RULES, now=now)


@dataclass(frozen=True)
class Step:
    after: timedelta
    act: Act


@dataclass(frozen=True)
class History:
    """All that became of a set of eight VMs in three update domains, played when it is read."""

    policy: Policy
    is_active: bool
    steps: Sequence[Step]

    def __iter__(self) -> Iterator[Chapter]:
        scope = self._scope()
        now = NOON
        ids = fresh_ids()
        for step in self.steps:
            now += step.after
            if isinstance(step.act, Wake):
                instants = [e.not_before for e in scope.events.values() if e.not_before is not None]
                now = max(now, min(instants, default=now))
            try:
                change = step.act.on(scope, ids, now)
            except RefusalError:
                continue
            yield Chapter(now=now, before=scope, change=change)
            scope = change.scope

    def _scope(self) -> Scope:
        resources = [
            a_resource(
                name,
                host=f"host{domain}",
                update_domain=domain,
                priority=Priority.SPOT if name.startswith("spot") else Priority.REGULAR,
                eviction_policy=EvictionPolicy.DELETE if name == "spot2" else DEALLOCATE,
                terminate_notice=15 * MINUTE if name in {"vm1", "vm2"} else None,
            )
            for name, domain in UPDATE_DOMAIN.items()
        ]
        return a_scope(
            resources=resources, policy=self.policy, active=self.is_active, last_read_at=NOON
        )


def histories() -> st.SearchStrategy[History]:
    policies = st.sampled_from([Policy(), Policy(approves_user_reboot=True)])
    return st.builds(History, policies, st.sampled_from([True, True, True, False]), _steps())


def _steps() -> st.SearchStrategy[list[Step]]:
    # Mostly moments: what waits for something else than time shows only while little time passes.
    spans = st.one_of(
        st.sampled_from([timedelta(0), SECOND, MINUTE]),
        st.sampled_from([timedelta(0), SECOND, MINUTE]),
        st.timedeltas(min_value=timedelta(0), max_value=20 * MINUTE),
        st.sampled_from([10 * MINUTE, 15 * MINUTE, DAY]),
    )
    sources = st.sampled_from(EventSource)
    short_notice = st.none() | st.timedeltas(min_value=timedelta(0), max_value=SHORT_NOTICE)
    delete = st.builds(Delete, NUMBERS, st.integers(1, 3))
    approve = st.builds(Approve, st.lists(NUMBERS, min_size=1, max_size=3))
    carry_out = st.builds(CarryOut, NUMBERS)
    # What is here more than once happens more often.
    acts: list[st.SearchStrategy[Act]] = [
        delete,
        delete,
        delete,
        st.builds(Schedule, TYPES, sources, NUMBERS, st.integers(1, 2), short_notice),
        approve,
        approve,
        approve,
        approve,
        carry_out,
        carry_out,
        st.builds(Cancel, NUMBERS),
        st.builds(Remove, NUMBERS),
        st.builds(MaintainHost, st.integers(0, 2), MAINTAINABLE),
        st.builds(MaintainSet, MAINTAINABLE),
        st.builds(FailHost, st.integers(0, 2)),
        st.builds(Read),
        st.builds(Wake),
        st.builds(Wake),
    ]
    return st.lists(st.builds(Step, spans, st.one_of(acts)), min_size=10, max_size=20)


def _pick(things: Sequence[Name], number: int) -> Sequence[Name]:
    """One of them, or none where there are none."""
    return [things[number % len(things)]] if things else []


def _with_status(scope: Scope, status: EventStatus) -> list[EventId]:
    return [event.id for event in scope.events.values() if event.status is status]


def _works(scope: Scope) -> list[MaintenanceId]:
    works = dict.fromkeys(event.maintenance for event in scope.events.values())
    return [work for work in works if work is not None]
