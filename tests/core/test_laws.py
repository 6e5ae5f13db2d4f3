"""What holds of every history that hypothesis can think of."""

from collections import Counter
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from forewarned.core import lifecycle, notice
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import (
    Event,
    EventSource,
    EventStatus,
    EventType,
    Scope,
    StartCause,
    document,
)
from forewarned.core.transitions import Canceled, Completed, EventTransition, Scheduled, Started
from tests.builders import NOON, SECOND, A, a_resource, a_scope
from tests.core.builders_core import a_new_event, facts, shown
from tests.core.histories import RULES, SHORT_NOTICE, UPDATE_DOMAIN, Chapter, History, histories

SCHEDULED, STARTED = EventStatus.SCHEDULED, EventStatus.STARTED


# Laws about what is rare need more histories than those about what is in every one.
LONG = settings(max_examples=100)
SHORT = settings(max_examples=25)


def wakes(history: History) -> list[Chapter]:
    """Each chapter's scope, woken at the instant the chapter ends."""
    return [
        Chapter(
            now=chapter.now,
            before=chapter.after,
            change=lifecycle.wake(chapter.after, rules=RULES, now=chapter.now),
        )
        for chapter in history
    ]


def not_before(chapter: Chapter, event: Event) -> datetime | None:
    """What the event had promised before it started."""
    known = chapter.before.events.get(event.id)
    promised = [f.event for f in facts(chapter.change, Scheduled) if f.event.id == event.id]
    for earlier in (known, *promised):
        if earlier is not None:
            return earlier.not_before
    return None


@LONG
@given(histories())
def test_no_event_starts_before_its_not_before_without_consent(history: History) -> None:
    """I1."""
    for chapter in [*history, *wakes(history)]:
        for fact in facts(chapter.change, Started):
            event, promised = fact.event, not_before(chapter, fact.event)
            assert (
                (promised is not None and promised <= fact.at)
                or event.approval is not None
                or fact.cause is StartCause.HOST_FAILURE
                # Born of a notice that was over at once, or where nobody reads.
                or (event.created_at == fact.at and promised is None)
                or (fact.cause is StartCause.INACTIVE and not event.announced)
            )


@SHORT
@given(histories())
def test_the_cause_of_a_start_is_true(history: History) -> None:
    """I1."""
    for chapter in history:
        for fact in facts(chapter.change, Started):
            event = fact.event
            approved = event.approval is not None and not event.approval.by_policy
            match fact.cause:
                case StartCause.APPROVED:
                    assert approved
                case StartCause.POLICY:
                    assert event.approval is not None
                    assert event.approval.by_policy
                case StartCause.INACTIVE:
                    assert not event.announced
                case StartCause.NOT_BEFORE | StartCause.HOST_FAILURE:
                    assert event.started_at == chapter.now


@SHORT
@given(histories())
def test_every_event_gets_the_notice_of_its_type_unless_it_was_to_have_less(
    history: History,
) -> None:
    """I2."""
    for chapter in history:
        for fact in facts(chapter.change, Scheduled):
            promised = fact.event.not_before
            assert promised is not None
            vms = [chapter.before.resources[name] for name in fact.event.resources]
            least = notice.minimum(fact.event.type, vms)
            given = promised - fact.at
            assert given >= least or given <= SHORT_NOTICE + SECOND


@SHORT
@given(histories())
def test_a_not_before_never_moves_and_is_gone_once_started(history: History) -> None:
    """I3."""
    for chapter in history:
        for event in chapter.after.events.values():
            earlier = chapter.before.events.get(event.id)
            if event.status is STARTED:
                assert event.not_before is None
            elif earlier is not None:
                assert event.not_before == earlier.not_before
            else:
                assert event.not_before is not None
                assert event.not_before.microsecond == 0


@SHORT
@given(histories())
def test_an_open_event_names_vms_that_are_there_and_at_least_one(history: History) -> None:
    """I9, F18: a VM that is made anew finds nothing of the one before it."""
    for chapter in history:
        for event in chapter.after.events.values():
            assert event.resources
            assert set(event.resources) <= set(chapter.after.resources)


@SHORT
@given(histories())
def test_every_event_starts_at_most_once(history: History) -> None:
    """I5."""
    starts = Counter(
        fact.event.id for chapter in history for fact in facts(chapter.change, Started)
    )

    assert not [event_id for event_id, count in starts.items() if count > 1]


@LONG
@given(histories())
def test_same_incarnation_means_same_events(history: History) -> None:
    """I6."""
    seen: dict[int, list[dict[str, object]]] = {}
    for chapter in history:
        for scope in (chapter.before, chapter.after):
            assert seen.setdefault(scope.incarnation, shown(scope)) == shown(scope)


@SHORT
@given(histories())
def test_the_incarnation_moves_if_and_only_if_something_else_is_shown(history: History) -> None:
    """I6, I7."""
    for chapter in [*history, *wakes(history)]:
        moved = chapter.after.incarnation > chapter.before.incarnation

        assert chapter.after.incarnation >= chapter.before.incarnation
        assert moved == (shown(chapter.after) != shown(chapter.before))


@SHORT
@given(histories())
def test_an_event_names_vms_of_one_update_domain_and_at_least_one(history: History) -> None:
    """I9."""
    for chapter in history:
        for event in chapter.after.events.values():
            assert len({UPDATE_DOMAIN[name] for name in event.resources}) == 1


@SHORT
@given(histories())
def test_a_scheduled_event_names_only_vms_that_are_there(history: History) -> None:
    """I9."""
    for chapter in history:
        for event in chapter.after.events.values():
            assert event.status is STARTED or set(event.resources) <= set(chapter.after.resources)


@LONG
@given(histories())
def test_an_approved_terminate_waits_exactly_while_an_earlier_one_is_unapproved(
    history: History,
) -> None:
    """I17."""
    for chapter in history:
        woken = lifecycle.wake(chapter.after, rules=RULES, now=chapter.now).scope
        waiting = [
            event
            for event in woken.events.values()
            if event.type is EventType.TERMINATE and event.status is SCHEDULED
        ]
        for event in waiting:
            if event.approval is not None:
                assert _unapproved_no_later(waiting, event)
        for fact in facts(chapter.change, Started):
            is_early = fact.cause in {StartCause.APPROVED, StartCause.POLICY}
            if fact.event.type is EventType.TERMINATE and is_early:
                as_promised = chapter.before.events.get(fact.event.id)
                assert as_promised is None or not _unapproved_no_later(
                    list(chapter.after.events.values()), as_promised
                )


def _unapproved_no_later(events: list[Event], event: Event) -> list[Event]:
    assert event.not_before is not None
    return [
        other
        for other in events
        if other.type is EventType.TERMINATE
        and other.not_before is not None
        and other.not_before <= event.not_before
        and other.approval is None
    ]


@SHORT
@given(histories())
def test_an_event_goes_from_scheduled_to_started_and_never_back(history: History) -> None:
    """I18."""
    over: set[EventId] = set()
    for chapter in history:
        before, after = chapter.before.events, chapter.after.events
        for event_id in before.keys() & after.keys():
            moved = (before[event_id].status, after[event_id].status)
            assert moved in {(SCHEDULED, SCHEDULED), (SCHEDULED, STARTED), (STARTED, STARTED)}
        assert {event.status for event in after.values()} <= {SCHEDULED, STARTED}
        over |= before.keys() - after.keys()
        assert not over & after.keys()


@SHORT
@given(histories())
def test_an_event_leaves_only_with_a_record_and_what_is_on_record_leaves(history: History) -> None:
    """I19."""
    for chapter in history:
        ended = [*facts(chapter.change, Completed), *facts(chapter.change, Canceled)]
        left = chapter.before.events.keys() - chapter.after.events.keys()

        assert Counter(fact.event.id for fact in ended) == Counter(left)


@SHORT
@given(histories())
def test_every_event_that_appears_is_on_record(history: History) -> None:
    """I19, I29."""
    for chapter in history:
        told = {fact.event.id for fact in facts(chapter.change, EventTransition)}

        assert chapter.after.events.keys() - chapter.before.events.keys() <= told


@SHORT
@given(histories())
def test_once_woken_nothing_is_overdue_and_the_next_wake_is_yet_to_come(history: History) -> None:
    """I20."""
    for chapter in wakes(history):
        for event in chapter.after.events.values():
            assert event.not_before is None or event.not_before > chapter.now
        next_wake = lifecycle.next_wake(chapter.after, rules=RULES)
        assert next_wake is None or next_wake > chapter.now


@SHORT
@given(histories())
def test_waking_is_idempotent(history: History) -> None:
    """I5."""
    for chapter in wakes(history):
        again = lifecycle.wake(chapter.after, rules=RULES, now=chapter.now)

        assert again.scope == chapter.after
        assert again.transitions == ()


@SHORT
@given(histories())
def test_a_scope_is_left_settled_by_every_act_so_that_only_time_has_work_for_a_wake(
    history: History,
) -> None:
    """I20: whatever may start has started when the act is over."""
    for chapter in history:
        next_wake = lifecycle.next_wake(chapter.after, rules=RULES)
        if next_wake is None or next_wake > chapter.now:
            woken = lifecycle.wake(chapter.after, rules=RULES, now=chapter.now)
            assert woken.scope == chapter.after


@LONG
@given(histories())
def test_no_two_update_domains_are_under_maintenance_together(history: History) -> None:
    """I21."""
    for chapter in history:
        domains = {
            UPDATE_DOMAIN[name]
            for event in chapter.after.events.values()
            if event.maintenance is not None and event.status is STARTED
            for name in event.resources
            if name in chapter.after.resources
        }
        assert len(domains) <= 1


@SHORT
@given(histories())
def test_switching_off_deletes_no_event(history: History) -> None:
    """I28."""
    for chapter in history:
        if chapter.before.active and not chapter.after.active:
            assert chapter.before.events.keys() == chapter.after.events.keys()


@SHORT
@given(histories())
def test_what_a_change_reports_has_happened_now_and_here(history: History) -> None:
    """I29."""
    for chapter in history:
        for fact in chapter.change.transitions:
            assert fact.at == chapter.now
            assert fact.scope_id == chapter.before.id


@given(
    st.lists(st.sampled_from(["web", "Web-1", "WebRole_IN_0"]), min_size=1, unique=True),
    st.data(),
)
def test_names_mean_the_same_in_any_letter_case(names: list[str], draws: st.DataObject) -> None:
    scope = a_scope(resources=[a_resource(name) for name in names])
    spelled = [_in_any_case(name, draws) for name in names]

    as_named = _scheduled(scope, names)
    as_spelled = _scheduled(scope, spelled)

    assert document(as_spelled) == document(as_named)
    assert lifecycle.named(scope, [ResourceName(name) for name in spelled]) == tuple(
        scope.resources.values()
    )


def _in_any_case(name: str, draws: st.DataObject) -> str:
    upper = draws.draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    return "".join(
        letter.upper() if is_upper else letter.lower()
        for letter, is_upper in zip(name, upper, strict=True)
    )


def _scheduled(scope: Scope, names: list[str]) -> Scope:
    new = a_new_event(A, source=EventSource.USER, resources=names)
    return lifecycle.schedule(scope, new, rules=RULES, now=NOON).scope
