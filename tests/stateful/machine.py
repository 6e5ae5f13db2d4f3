"""Everything anybody may ask of the product, in any order, with the laws checked after each step.

What a request must answer is foretold from the oracle; what must hold whatever was asked is in the
laws.
"""

from collections.abc import Collection
from datetime import timedelta
from random import Random
from typing import ClassVar, Final, TypeVar

import hypothesis.strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from typing_extensions import override

from forewarned.core.errors import (
    AlreadyStartedError,
    ClosedEventError,
    DuplicateEventError,
    MaintenanceConflictError,
    NotStartedError,
    RefusalError,
    UnknownHostError,
)
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import EventSource, EventType
from forewarned.core.rules import Rules
from forewarned.service.events.schedule import EventOrder, WorkOrder
from forewarned.service.records import Stage, StageReport
from forewarned.service.use_cases import UseCases
from tests.builders import DAY, HOUR, MINUTE, NOON, OPERATOR, SECOND, event_id
from tests.stateful import expectations
from tests.stateful.documents import NEWEST, SHAPES
from tests.stateful.expectations import is_under_work, vms_up
from tests.stateful.fleet import BATCH, FULL, SCOPES, SPOT_SCOPES, VMS, plan
from tests.stateful.observer import Observer, changed_nothing
from tests.stateful.oracle import Life, Oracle
from tests.stateful.stack import Stack
from tests.stateful.task_rules import TaskRules

T = TypeVar("T")

MILLISECOND: Final = timedelta(milliseconds=1)
NO_TIME: Final = timedelta(0)
FEW: Final = 4
NEVER_MADE: Final = event_id(0xDEAD)

names = st.sampled_from(sorted(VMS))
scopes = st.sampled_from(SCOPES)
picks = st.integers(min_value=0, max_value=99)
types = st.sampled_from(EventType)
sources = st.sampled_from(EventSource)
durations = st.sampled_from([None, NO_TIME, 9 * SECOND, 2 * MINUTE])
notices = st.sampled_from(
    [None, NO_TIME, 29 * SECOND, 7 * MINUTE, 10 * MINUTE, 15 * MINUTE, HOUR, 91 * DAY]
)
maintainable = st.sampled_from([EventType.REBOOT, EventType.FREEZE, EventType.REDEPLOY])
works = st.one_of(
    st.builds(WorkOrder, type=maintainable),
    st.builds(
        WorkOrder, type=types, notice=notices, short_notice=st.booleans(), duration=durations
    ),
)
steps = st.one_of(
    st.integers(min_value=1, max_value=90_000).map(lambda number: number * MILLISECOND),
    st.sampled_from([5 * MINUTE, 10 * MINUTE, 16 * MINUTE, HOUR, 23 * HOUR]),
)
downtimes = st.sampled_from([NO_TIME, NO_TIME, MILLISECOND, 4 * MINUTE, 20 * MINUTE, 25 * HOUR])
offsets = st.sampled_from([-SECOND, -MILLISECOND, NO_TIME, MILLISECOND, SECOND, MINUTE])


class ScheduledEvents(TaskRules):
    stack_type: ClassVar[type[Stack]]

    @property
    def oracle(self) -> Oracle:
        return self.observer.oracle

    @property
    def app(self) -> UseCases:
        return self.observer.stack.use_cases

    @initialize(
        fraction=st.sampled_from([0, 1, 400_000, 999_999]),
        is_simulated=st.booleans(),
        short_allowed=st.booleans(),
        silent=st.sets(scopes, max_size=2),
    )
    def begin(
        self, fraction: int, *, is_simulated: bool, short_allowed: bool, silent: set[ScopeId]
    ) -> None:
        self.short_allowed = short_allowed
        self.observer = Observer(
            self.stack_type,
            start=NOON.replace(microsecond=fraction),
            rules=Rules(short_notice_allowed=short_allowed),
            is_simulated=is_simulated,
        )
        self.observer.expect(self.app.fleet.apply(plan(), by=OPERATOR))
        self._read(set(SCOPES) - silent)

    @override
    def teardown(self) -> None:
        if hasattr(self, "observer"):
            self.observer.close()

    @invariant()
    def the_laws_hold(self) -> None:
        self.observer.check_state()

    # --- causing events ----------------------------------------------------------------------

    @rule(
        type_=types,
        vms=st.lists(names, min_size=1, max_size=3),
        source=sources,
        notice=notices,
        short_notice=st.booleans(),
        duration=durations,
    )
    def schedule(
        self,
        type_: EventType,
        vms: list[str],
        source: EventSource,
        notice: timedelta | None,
        *,
        short_notice: bool,
        duration: timedelta | None,
    ) -> None:
        self._schedule(
            EventOrder(
                type=type_,
                resources=tuple(map(ResourceName, vms)),
                source=source,
                notice=notice,
                short_notice=short_notice,
                duration=duration,
            )
        )

    @rule(turn=picks, name=names, source=sources)
    def schedule_one(self, turn: int, name: str, source: EventSource) -> None:
        """What suits the VM, with the notice it is due."""
        last = EventType.PREEMPT if VMS[name].scope in SPOT_SCOPES else EventType.TERMINATE
        suitable = [EventType.REBOOT, EventType.FREEZE, EventType.REDEPLOY, last]
        type_ = suitable[turn % len(suitable)]
        self._schedule(EventOrder(type=type_, resources=(ResourceName(name),), source=source))

    @rule(
        batch=st.sets(st.sampled_from(range(FULL[BATCH])), min_size=1),
        notice=st.sampled_from([None, 7 * MINUTE, 8 * MINUTE, 15 * MINUTE]),
    )
    def schedule_terminates(self, batch: set[int], notice: timedelta | None) -> None:
        resources = tuple(ResourceName(f"batch_{number}") for number in sorted(batch))
        user, terminate = EventSource.USER, EventType.TERMINATE
        self._schedule(EventOrder(type=terminate, resources=resources, source=user, notice=notice))

    @precondition(lambda self: self.oracle.lives)
    @rule(name=names, pick=picks)
    def schedule_under_a_used_id(self, name: str, pick: int) -> None:
        """I18: no EventId is used again, not even when its event is long over."""
        if name not in self.oracle.vms():
            return
        used = _chosen(self.oracle.lives.values(), pick).event.id
        self.observer.stack.give_next(used)
        reboot, platform = EventType.REBOOT, EventSource.PLATFORM
        order = EventOrder(type=reboot, resources=(ResourceName(name),), source=platform)

        self.observer.expect(self.app.scheduler.schedule(order, by=OPERATOR), [DuplicateEventError])

    # Failures always succeed, and would crowd out the rest.
    @precondition(lambda self: len(self.oracle.under_way()) < FEW)
    @rule(pick=picks, is_foreseen=st.booleans())
    def fail_host(self, pick: int, *, is_foreseen: bool) -> None:
        host = self._host(pick)
        refusals = [] if vms_up(self.oracle, host=host) else [UnknownHostError]
        scheduler = self.app.scheduler
        fail = scheduler.predict_failure if is_foreseen else scheduler.fail_host

        self.observer.expect(fail(host, by=OPERATOR), refusals)

    @rule(pick=picks, work=works)
    def maintain_host(self, pick: int, work: WorkOrder) -> None:
        host = self._host(pick)
        refusals = expectations.of_host_work(
            work, host, self.oracle, short_allowed=self.short_allowed
        )
        touched = {vm.scope for vm in vms_up(self.oracle, host=host)}
        may_conflict = any(is_under_work(self.oracle, scope_id) for scope_id in touched)

        answer, _ = self.observer.attempt(
            self.app.scheduler.maintain_host(host, work, by=OPERATOR), is_short=work.short_notice
        )

        _assert_answered(answer, refusals, may_conflict=may_conflict)

    @rule(scope_id=scopes, work=works)
    def maintain_set(self, scope_id: ScopeId, work: WorkOrder) -> None:
        refusals = expectations.of_set_work(
            work, scope_id, self.oracle, short_allowed=self.short_allowed
        )
        may_conflict = is_under_work(self.oracle, scope_id)

        answer, _ = self.observer.attempt(
            self.app.scheduler.maintain_set(scope_id, work, by=OPERATOR),
            is_short=work.short_notice,
        )

        _assert_answered(answer, refusals, may_conflict=may_conflict)

    def _schedule(self, order: EventOrder) -> None:
        refusals = expectations.of_order(order, self.oracle, short_allowed=self.short_allowed)
        answer, heard = self.observer.attempt(
            self.app.scheduler.schedule(order, by=OPERATOR), is_short=order.short_notice
        )
        _assert_answered(answer, refusals, may_conflict=False)
        if not isinstance(answer, RefusalError):
            told = [saved.scope.events for moment in heard for saved in moment.commit.scopes]
            asked = {record.event.id for record in answer}
            assert asked == {i for events in told for i in events if i in asked}, "I10: not at once"
            assert len([moment for moment in heard if moment.commit.scopes]) == 1, "I10: in parts"

    # --- approving, calling off, carrying out ------------------------------------------------

    @precondition(lambda self: self.oracle.lives)
    @rule(name=names, chosen=st.lists(picks, min_size=1, max_size=3))
    def approve(self, name: str, chosen: list[int]) -> None:
        """As any VM, any ids: waiting, foreign, over, or never made."""
        lives = list(self.oracle.lives.values())
        ids = [_chosen(lives, pick).event.id if pick % 20 else NEVER_MADE for pick in chosen]
        self.observer.approve(name, ids)

    @precondition(lambda self: self.oracle.waiting())
    @rule(chosen=st.lists(picks, min_size=1, max_size=2), times=st.integers(1, 2))
    def approve_what_waits(self, chosen: list[int], times: int) -> None:
        life = _chosen(self.oracle.waiting(), chosen[0])
        here = [other for other in self.oracle.waiting() if other.scope_id == life.scope_id]
        ids = [life.event.id, *(_chosen(here, pick).event.id for pick in chosen[1:])]
        vms = self.oracle.vms(life.scope_id)
        for number in range(times if vms else 0):
            self.observer.approve(vms[(chosen[0] + number) % len(vms)], ids)

    @precondition(lambda self: self.oracle.waiting())
    @rule(pick=picks)
    def approve_a_known_and_an_unknown_id(self, pick: int) -> None:
        """I15: all are looked at before one is approved. I12: a foreign id is as good as none."""
        life = _chosen(self.oracle.waiting(), pick)
        vms = self.oracle.vms(life.scope_id)
        foreign = [other for other in self.oracle.lives.values() if other.scope_id != life.scope_id]
        if not vms or not foreign:
            return
        theirs = _chosen(foreign, pick).event.id
        name = vms[pick % len(vms)]

        unknown = self.observer.approve(name, [life.event.id, NEVER_MADE])
        other = self.observer.approve(name, [life.event.id, theirs])

        assert str(unknown).replace(NEVER_MADE, "") == str(other).replace(theirs, ""), "I12"

    @precondition(lambda self: self.oracle.lives)
    @rule(pick=picks)
    def approve_from_outside(self, pick: int) -> None:
        life = _chosen(self.oracle.lives.values(), pick)

        self.observer.expect(self.app.approvals.approve_from_outside(life.event.id, by=OPERATOR))

        assert not life.is_waiting or life.approval is not None, "I14: it was answered"

    @precondition(lambda self: self.oracle.waiting())
    @rule(
        pick=picks,
        order=st.permutations(range(5)),
        is_canceled=st.booleans(),
        late=st.sampled_from([NO_TIME, MILLISECOND, SECOND]),
    )
    def race(self, pick: int, order: list[int], *, is_canceled: bool, late: timedelta) -> None:
        """Approvals by every door, a cancellation and the NotBefore itself, all at once.

        All at one instant: a clock that moved meanwhile would be read by the store's own thread at
        a moment that is different each time.
        """
        life = _chosen(self.oracle.waiting(), pick)
        wanted, clock = life.event.id, self.observer.stack.dial.clock
        assert life.not_before is not None
        self.observer.step(life.not_before - MILLISECOND - clock.now())
        clock.jump(life.not_before + late - clock.now())
        approvals = [self.observer.approval(vm, wanted) for vm in self.oracle.vms(life.scope_id)]
        approvals = [
            *approvals[:2],
            lambda: self.app.approvals.approve_from_outside(wanted, by=OPERATOR),
        ]
        calls = [*approvals, lambda: clock.step(NO_TIME)]
        if is_canceled:
            calls.append(lambda: self.app.scheduler.cancel(wanted, reason="late", by=OPERATOR))
        calls = [calls[turn] for turn in order if turn < len(calls)]

        answers = self.observer.together(calls)

        for call, answer in zip(calls, answers, strict=True):
            if call in approvals:
                assert answer is None, f"I12: {answer!r}"
            if isinstance(answer, Exception):
                assert isinstance(answer, AlreadyStartedError | ClosedEventError), f"I5: {answer!r}"

    @precondition(lambda self: self.oracle.lives)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        life = _chosen(self.oracle.lives.values(), pick)
        refusals = _refusals_of(life, if_waiting=None, if_started=AlreadyStartedError)

        self.observer.expect(
            self.app.scheduler.cancel(life.event.id, reason="no need", by=OPERATOR), refusals
        )

        assert not life.is_waiting

    @precondition(lambda self: self.oracle.lives)
    @rule(pick=picks)
    def complete(self, pick: int) -> None:
        under_way = self.oracle.under_way() if pick % 4 else []
        life = _chosen(under_way or self.oracle.lives.values(), pick)
        refusals = _refusals_of(life, if_waiting=NotStartedError, if_started=None)

        self.observer.expect(
            self.app.actuation.complete_by_hand(life.event.id, by=OPERATOR), refusals
        )

        assert life.is_over or life.is_waiting

    @precondition(lambda self: self.is_simulated and self.oracle.under_way())
    @rule(pick=picks, order=st.permutations([*Stage, Stage.COMPLETED]))
    def report(self, pick: int, order: list[Stage]) -> None:
        """Actuators may repeat themselves, in any order. The first completion counts."""
        life = _chosen(self.oracle.under_way(), pick)
        for stage in order:
            was_over = life.is_over
            report = StageReport(stage, life.scope_id, life.event.id)
            answer, heard = self.observer.attempt(self.app.actuation.report(report))
            assert answer is None
            assert not was_over or changed_nothing(heard), "I18: a late report changed something"

        assert life.is_over

    # --- reading, time, and ends -------------------------------------------------------------

    @rule(scope_id=scopes)
    def poll(self, scope_id: ScopeId) -> None:
        """I8: every VM of a scope reads the same, in each api-version."""
        for name in self.oracle.vms(scope_id):
            self.observer.poll(name, *SHAPES)

    @rule(chance=st.randoms(use_true_random=False))
    def hear_out_of_order(self, chance: Random) -> None:
        self.observer.check_board_in_any_order(chance)

    @rule(by=steps)
    def let_time_pass(self, by: timedelta) -> None:
        """While agents go on reading."""
        self.observer.step(by)
        self._read(SCOPES)

    @precondition(lambda self: self.oracle.next_not_before())
    @rule(offset=offsets)
    def go_to_the_next_not_before(self, offset: timedelta) -> None:
        not_before = self.oracle.next_not_before()
        assert not_before is not None
        self.observer.step(not_before + offset - self.observer.stack.now)

    @rule(scope_id=scopes, offset=offsets, readers=st.sets(scopes, min_size=4))
    def fall_silent(self, scope_id: ScopeId, offset: timedelta, readers: set[ScopeId]) -> None:
        """I28: until 24 hours after the last read of a scope, or just before. Then some read."""
        reads = self.oracle.reads.get(scope_id)
        if reads is not None:
            silent_at = reads.latest + self.observer.stack.rules.silence
            self.observer.step(silent_at + offset - self.observer.stack.now)
        self.observer.check_state()
        self._read(readers)

    @rule(scope_id=scopes, size=st.integers(0, 3))
    def resize_the_fleet(self, scope_id: ScopeId, size: int) -> None:
        """VMs go, with the events that name nobody else; those that went before come back."""
        sizes = {**FULL, scope_id: min(size, FULL[scope_id])}
        here = [life for life in self.oracle.of_scope(scope_id) if not life.is_over]

        self.observer.expect(self.app.fleet.apply(plan(sizes), by=OPERATOR, prune=True))

        assert len(self.oracle.vms()) == sum(sizes.values())
        left = set(self.oracle.vms(scope_id))
        for life in here:
            assert life.is_over or left.intersection(life.event.resources), "I19: it has no VM left"

    @rule(downtime=downtimes, is_crash=st.booleans())
    def begin_again(self, downtime: timedelta, *, is_crash: bool) -> None:
        end = self.observer.crash if is_crash else self.observer.stop
        end(downtime=downtime)
        self.observer.check_state()
        self._read(SCOPES)

    def _read(self, by_scope: Collection[ScopeId]) -> None:
        for scope_id in SCOPES:
            for name in self.oracle.vms(scope_id)[:1] if scope_id in by_scope else ():
                self.observer.poll(name, NEWEST)

    def _host(self, pick: int) -> HostName:
        known = [*self.oracle.hosts(), "rack-0"]
        return HostName(known[pick % len(known)])


def _chosen(lives: Collection[Life], pick: int) -> Life:
    """The newest for 0: what happened last is what shrinking should look at first."""
    listed = list(lives)
    return listed[-1 - pick % len(listed)]


def _refusals_of(
    life: Life,
    *,
    if_waiting: type[RefusalError] | None,
    if_started: type[RefusalError] | None,
) -> list[type[RefusalError]]:
    refusal = if_waiting if life.is_waiting else if_started
    if life.is_over:
        refusal = ClosedEventError
    return [] if refusal is None else [refusal]


def _assert_answered(
    answer: object, refusals: Collection[type[RefusalError]], *, may_conflict: bool
) -> None:
    if may_conflict and isinstance(answer, MaintenanceConflictError):
        return
    if refusals:
        assert isinstance(answer, tuple(refusals)), f"{answer!r} is none of {refusals}"
    else:
        assert not isinstance(answer, RefusalError), f"refused: {answer!r}"
