"""What every single commit must keep to. Each law is named after the invariant it checks.

A law gets the oracle as it is after the commit, and the commit with the scopes before it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from forewarned.core.ids import EventId
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    ResourceState,
    Scope,
    StartCause,
)
from forewarned.core.transitions import (
    Activated,
    Approved,
    Canceled,
    Completed,
    Deactivated,
    EventTransition,
    Narrowed,
    ResourceAdded,
    ResourceRemoved,
    Scheduled,
    Started,
    Transition,
    VmsTransition,
)
from tests.builders import MINUTE, SECOND
from tests.stateful.fleet import AUTO, TERMINATE_NOTICE, USUAL_TERMINATE_NOTICE, VMS
from tests.stateful.oracle import Life, Moment, Oracle

MINIMUM_NOTICE: Final = {
    EventType.FREEZE: 15 * MINUTE,
    EventType.REBOOT: 15 * MINUTE,
    EventType.REDEPLOY: 10 * MINUTE,
    EventType.PREEMPT: 30 * SECOND,
}
LATEST_START: Final = 5 * SECOND

_NEXT: Final[dict[EventStatus, tuple[type[EventTransition], ...]]] = {
    EventStatus.SCHEDULED: (Approved, Narrowed, Started, Canceled),
    EventStatus.STARTED: (VmsTransition, Narrowed, Completed),
    EventStatus.COMPLETED: (),
    EventStatus.CANCELED: (),
}


def minimum_notice(type_: EventType, names: Iterable[str]) -> timedelta:
    if type_ is EventType.TERMINATE:
        scopes = [VMS[name].scope for name in names]
        return max(TERMINATE_NOTICE.get(scope, USUAL_TERMINATE_NOTICE) for scope in scopes)
    return MINIMUM_NOTICE[type_]


def i1_no_early_start(oracle: Oracle, moment: Moment) -> None:
    for start in moment.starts:
        life = oracle.lives[start.event.id]
        assert start.at <= moment.heard_at, f"I1: {start.event.id} started in the future"
        if life.not_before is not None and start.at >= life.not_before:
            continue
        if start.cause is StartCause.HOST_FAILURE:
            assert life.facts == [start], "I1: a host fails once, and without notice"
        elif start.cause is StartCause.POLICY:
            assert life.facts == [start], "I1: the policy speaks before the event is published"
            assert _is_approved_by_policy(life, moment), "I1: no policy approves this"
        elif start.cause is StartCause.NOT_BEFORE:
            assert life.facts == [start], "I1: its NotBefore has not come"
            assert _may_be_short(oracle, life), "I1: born started, and nobody asked for no notice"
        elif start.cause is StartCause.INACTIVE:
            assert not life.event.announced, "I1: it was announced, so it needs approval"
        else:
            assert start.cause is StartCause.APPROVED, f"I1: {start.cause} before NotBefore"
            assert life.times(Approved) == 1, "I1: nobody has approved it"


def i2_minimum_notice(oracle: Oracle, moment: Moment) -> None:
    for fact in moment.commit.transitions:
        if not isinstance(fact, Scheduled) or not fact.event.announced:
            continue
        event = fact.event
        assert event.not_before is not None
        assert event.not_before.microsecond == 0, "I1: NotBefore is a whole second"
        assert event.created_at == fact.at, "I2: notice runs from the commit"
        if _may_be_short(oracle, oracle.lives[event.id]):
            continue
        least = minimum_notice(event.type, event.resources)
        assert event.not_before - fact.at >= least, f"I2: {event.not_before - fact.at} < {least}"


def i3_not_before_never_moves(oracle: Oracle, moment: Moment) -> None:
    for saved in moment.commit.scopes:
        for event in saved.scope.events.values():
            life = oracle.lives[event.id]
            if event.status is EventStatus.SCHEDULED:
                assert event.not_before == life.not_before, f"I3: {event.id} has another NotBefore"
            else:
                assert event.not_before is None, f"I3: {event.id} started and has a NotBefore"


def i5_one_start(oracle: Oracle, moment: Moment) -> None:
    for start in moment.starts:
        assert oracle.lives[start.event.id].times(Started) == 1, f"I5: {start.event.id} again"


def i9_resources_are_of_one_scope_and_update_domain(oracle: Oracle, moment: Moment) -> None:
    for fact in moment.commit.transitions:
        if isinstance(fact, EventTransition):
            vms = [VMS[name] for name in fact.event.resources]
            assert {vm.scope for vm in vms} == {fact.scope_id}, "I9: a VM of another scope"
            assert len({vm.domain for vm in vms}) == 1, "I9: several update domains"


def i9_open_events_name_vms_that_are_there(oracle: Oracle, moment: Moment) -> None:
    """F18: whoever is made anew under a name that was in use reads of nothing that concerned it."""
    for saved in moment.commit.scopes:
        for event in saved.scope.events.values():
            gone = set(event.resources) - set(saved.scope.resources)
            assert event.resources, f"I9: {event.id} names no VM"
            assert not gone, f"I9: {event.id} names {gone}, and they are gone"


def i12_one_approval_counts(oracle: Oracle, moment: Moment) -> None:
    for fact in moment.commit.transitions:
        if isinstance(fact, Approved):
            assert oracle.lives[fact.event.id].times(Approved) == 1, "I12: approved twice"


def i13_only_what_waits_is_approved(oracle: Oracle, moment: Moment) -> None:
    """And a document changes only with a fact that says why: no approval too many changes one."""
    for saved in moment.commit.scopes:
        before = moment.scope_before(saved.scope.id)
        if before is None:
            continue
        facts = [fact for fact in moment.commit.transitions if fact.scope_id == saved.scope.id]
        for fact in facts:
            if isinstance(fact, Approved):
                event = before.events.get(fact.event.id)
                is_waiting = event is not None and event.status is EventStatus.SCHEDULED
                assert is_waiting, f"I13: {fact.event.id} was approved, and did not wait for it"
        is_same = saved.scope.incarnation == before.incarnation
        assert facts or is_same, f"I13: {saved.scope.id} has a new document, and nothing happened"


def i16_work_begins_when_each_part_is_ready(oracle: Oracle, moment: Moment) -> None:
    for start in moment.starts:
        life = oracle.lives[start.event.id]
        if life.not_before is not None and start.at < life.not_before:
            parts = oracle.parts_of_same_work(life)
            unready = [part.event.id for part in parts if not part.is_ready(start.at)]
            assert not unready, f"I16: {life.event.id} did not wait for {unready}"


def i17_terminates_wait_for_their_batch(oracle: Oracle, moment: Moment) -> None:
    for start in moment.starts:
        life = oracle.lives[start.event.id]
        if life.not_before is None or start.at >= life.not_before or not life.event.announced:
            continue
        unready = [other.event.id for other in oracle.holders(life, start.at)]
        assert not unready, f"I17: {life.event.id} did not wait for {unready}"


def i17_i20_nobody_waits_for_nothing(oracle: Oracle, moment: Moment) -> None:
    """What is approved and held back by nobody has started, in the same commit."""
    settled_at = oracle.settled_at(moment.heard_at)
    for life in oracle.waiting():
        assert life.not_before is not None
        if moment.heard_at < life.not_before and life.is_ready(settled_at):
            held_by = oracle.holders(life, settled_at)
            assert held_by, f"I17, I20: {life.event.id} is approved and waits for nothing"


def i18_lives_go_one_way(oracle: Oracle, moment: Moment) -> None:
    for event_id in _events_told_of(moment):
        facts = oracle.lives[event_id].facts
        assert isinstance(facts[0], Scheduled | Started), f"I18: {event_id} began as {facts[0]}"
        status = facts[0].event.status
        for fact in facts[1:]:
            assert isinstance(fact, _NEXT[status]), f"I18: {type(fact).__name__} while {status}"
            status = fact.event.status
        _assert_statuses_fit(facts)


def i19_no_event_vanishes(oracle: Oracle, moment: Moment) -> None:
    ended = {
        fact.event.id: fact
        for fact in moment.commit.transitions
        if isinstance(fact, Completed | Canceled)
    }
    for saved in moment.commit.scopes:
        before = moment.scope_before(saved.scope.id)
        left = set(before.events if before else ()) - set(saved.scope.events)
        assert left <= set(ended), f"I19: {left - set(ended)} vanished"


def i20_no_late_start(oracle: Oracle, moment: Moment) -> None:
    for start in moment.starts:
        not_before = oracle.lives[start.event.id].not_before
        if not_before is not None:
            latest = max(not_before, oracle.up_since) + LATEST_START
            assert start.at <= latest, f"I20: {start.event.id} started at {start.at}"


def i21_one_update_domain_under_work(oracle: Oracle, moment: Moment) -> None:
    for saved in moment.commit.scopes:
        domains = {
            VMS[name].domain
            for life in oracle.of_scope(saved.scope.id)
            if life.is_under_way and life.event.maintenance is not None
            for name in life.event.resources
        }
        assert len(domains) <= 1, f"I21: update domains {domains} of {saved.scope.id} together"


def i28_notice_is_given_to_those_who_read(oracle: Oracle, moment: Moment) -> None:
    """And switching a scope off changes no event."""
    for fact in moment.commit.transitions:
        if isinstance(fact, EventTransition) and oracle.lives[fact.event.id].facts[0] is fact:
            before = moment.scope_before(fact.scope_id)
            assert before is not None
            assert fact.event.announced == before.active, "I28: announced iff the scope is on"
        if isinstance(fact, Deactivated):
            before, after = moment.scope_before(fact.scope_id), oracle.scopes[fact.scope_id].scope
            assert before is not None
            assert set(after.events) == set(before.events), "I28: switching off took events"


def i29_every_change_has_one_fact(oracle: Oracle, moment: Moment) -> None:
    """Told from the scopes alone: what differs between before and after, fact by fact."""
    for saved in moment.commit.scopes:
        before = moment.scope_before(saved.scope.id)
        if before is None:
            continue
        facts = [fact for fact in moment.commit.transitions if fact.scope_id == saved.scope.id]
        expected = Counter(_changes(before, saved.scope))
        found = Counter(_changes_told(facts))
        surplus = found - expected
        assert not (expected - found), f"I29: no fact tells of {expected - found}"
        for (name, what), times in surplus.items():
            assert times == 1, f"I29: {name} of {what} is told {times} times too often"
            is_on_the_way = _is_on_the_way(name, what, expected, surplus)
            assert is_on_the_way, f"I29: {name} of {what} did not happen"


LAWS: Final = (
    i1_no_early_start,
    i2_minimum_notice,
    i3_not_before_never_moves,
    i5_one_start,
    i9_resources_are_of_one_scope_and_update_domain,
    i9_open_events_name_vms_that_are_there,
    i12_one_approval_counts,
    i13_only_what_waits_is_approved,
    i16_work_begins_when_each_part_is_ready,
    i17_terminates_wait_for_their_batch,
    i17_i20_nobody_waits_for_nothing,
    i18_lives_go_one_way,
    i19_no_event_vanishes,
    i20_no_late_start,
    i21_one_update_domain_under_work,
    i28_notice_is_given_to_those_who_read,
    i29_every_change_has_one_fact,
)


def _is_approved_by_policy(life: Life, moment: Moment) -> bool:
    before = moment.scope_before(life.scope_id)
    assert before is not None
    by_user = life.event.source is EventSource.USER
    is_waved_through = life.scope_id == AUTO and by_user
    if is_waved_through and life.event.type is EventType.REBOOT:
        return True
    return all(vm.state is ResourceState.DEALLOCATED for vm in before.resources.values())


def _may_be_short(oracle: Oracle, life: Life) -> bool:
    event = life.event
    return event.id in oracle.short_events or event.maintenance in oracle.short_work


def _events_told_of(moment: Moment) -> set[EventId]:
    return {f.event.id for f in moment.commit.transitions if isinstance(f, EventTransition)}


def _assert_statuses_fit(facts: list[EventTransition]) -> None:
    for fact in facts:
        status = fact.event.status
        match fact:
            case Scheduled() | Approved():
                assert status is EventStatus.SCHEDULED
            case Narrowed():
                assert status in {EventStatus.SCHEDULED, EventStatus.STARTED}
            case Started() | VmsTransition():
                assert status is EventStatus.STARTED
            case Completed():
                assert status is EventStatus.COMPLETED
            case _:
                assert status is EventStatus.CANCELED


def _is_on_the_way(
    name: str,
    what: str,
    expected: Mapping[tuple[str, str], int],
    surplus: Mapping[tuple[str, str], int],
) -> bool:
    """In one commit an event may be born, start, lose a VM and end, or any of these in a row."""
    event_id = what.partition(" ")[0]
    if name == Scheduled.__name__:
        return (Started.__name__, event_id) in expected or ("end", event_id) in surplus
    if name == Started.__name__:
        return ("end", event_id) in {*expected, *surplus}
    if name == "end":
        return bool({(Scheduled.__name__, event_id), (Started.__name__, event_id)} & {*surplus})
    return name == Narrowed.__name__ and (("end", event_id) in {*expected, *surplus})


def _changes(before: Scope, after: Scope) -> Iterable[tuple[str, str]]:
    if before.active != after.active:
        yield (Activated if after.active else Deactivated).__name__, ""
    for name in set(before.resources) - set(after.resources):
        yield ResourceRemoved.__name__, name
    for name in set(after.resources) - set(before.resources):
        yield ResourceAdded.__name__, name
    for event_id, event in before.events.items():
        now = after.events.get(event_id)
        if now is None:
            yield "end", event_id
        elif now.status is not event.status:
            yield Started.__name__, event_id
        if now is not None and now.approval != event.approval:
            yield Approved.__name__, event_id
        if now is not None and now.resources != event.resources:
            for name in set(event.resources) ^ set(now.resources):
                yield Narrowed.__name__, f"{event_id} {name}"
    for event_id, event in after.events.items():
        if event_id not in before.events:
            is_waiting = event.status is EventStatus.SCHEDULED
            yield (Scheduled if is_waiting else Started).__name__, event_id


def _changes_told(facts: Iterable[Transition]) -> Iterable[tuple[str, str]]:
    for fact in facts:
        match fact:
            case Activated() | Deactivated():
                yield type(fact).__name__, ""
            case ResourceAdded() | ResourceRemoved():
                yield type(fact).__name__, fact.resource
            case Completed() | Canceled():
                yield "end", fact.event.id
            case Narrowed():
                yield Narrowed.__name__, f"{fact.event.id} {fact.resource}"
            case Scheduled() | Started() | Approved():
                yield type(fact).__name__, fact.event.id
            case _:
                pass
