"""A scope is switched on by its first read, and off by a day of silence."""

from datetime import timedelta

from forewarned.core import lifecycle
from forewarned.core.model import Scope, document
from forewarned.core.rules import Rules
from forewarned.core.transitions import Activated, Deactivated
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND, A, a_scope, an_event
from tests.core.builders_core import AZURE, a_new_event, names_of_facts

MICROSECOND = timedelta(microseconds=1)


def read_at_noon(incarnation: int = 1) -> Scope:
    return a_scope(
        an_event(A, not_before=NOON + 7 * DAY), last_read_at=NOON, incarnation=incarnation
    )


def test_the_first_read_switches_a_scope_on() -> None:
    """I28."""
    scope = a_scope(active=False)

    change = lifecycle.read(scope, at=NOON)

    assert change.scope.active
    assert change.scope.last_read_at == NOON
    assert change.transitions == (Activated(scope_id=scope.id, at=NOON),)


def test_later_reads_are_remembered_but_are_no_facts() -> None:
    scope = lifecycle.read(a_scope(active=False), at=NOON).scope

    change = lifecycle.read(scope, at=NOON + HOUR)

    assert change.scope.last_read_at == NOON + HOUR
    assert change.transitions == ()


def test_a_read_that_is_told_late_does_not_undo_a_later_one() -> None:
    change = lifecycle.read(read_at_noon(), at=NOON - HOUR)

    assert change.scope.last_read_at == NOON


def test_reading_moves_no_incarnation() -> None:
    """I6."""
    scope = a_scope(active=False, incarnation=5)

    assert lifecycle.read(scope, at=NOON).scope.incarnation == 5


def test_a_day_of_silence_switches_a_scope_off_and_not_a_moment_less() -> None:
    """I28."""
    scope = read_at_noon()

    a_moment_less = lifecycle.wake(scope, rules=AZURE, now=NOON + DAY - MICROSECOND)
    a_day = lifecycle.wake(scope, rules=AZURE, now=NOON + DAY)

    assert a_moment_less.scope == scope
    assert not a_day.scope.active
    assert a_day.transitions == (Deactivated(scope_id=scope.id, at=NOON + DAY),)


def test_a_read_within_the_day_keeps_a_scope_on() -> None:
    """I28."""
    scope = lifecycle.read(read_at_noon(), at=NOON + 23 * HOUR).scope

    assert lifecycle.wake(scope, rules=AZURE, now=NOON + DAY).scope.active


def test_how_long_the_silence_lasts_is_a_setting() -> None:
    rules = Rules(silence=HOUR)

    assert not lifecycle.wake(read_at_noon(), rules=rules, now=NOON + HOUR).scope.active


def test_switching_off_deletes_no_event() -> None:
    """I19, I28."""
    scope = read_at_noon()

    change = lifecycle.wake(scope, rules=AZURE, now=NOON + DAY)

    assert document(change.scope) == document(scope)


def test_an_event_from_before_the_silence_keeps_its_not_before() -> None:
    """I1, I28."""
    scope = lifecycle.wake(read_at_noon(), rules=AZURE, now=NOON + DAY).scope

    early = lifecycle.wake(scope, rules=AZURE, now=NOON + 7 * DAY - SECOND)
    on_time = lifecycle.wake(scope, rules=AZURE, now=NOON + 7 * DAY)

    assert early.transitions == ()
    assert names_of_facts(on_time) == ["Started"]


def test_a_scope_that_was_switched_off_is_switched_on_by_the_next_read() -> None:
    """I28."""
    scope = lifecycle.wake(read_at_noon(), rules=AZURE, now=NOON + DAY).scope

    change = lifecycle.read(scope, at=NOON + 2 * DAY)

    assert change.scope.active
    assert names_of_facts(change) == ["Activated"]


def test_an_inactive_scope_is_not_switched_off_again() -> None:
    scope = lifecycle.wake(read_at_noon(), rules=AZURE, now=NOON + DAY).scope

    assert lifecycle.wake(scope, rules=AZURE, now=NOON + 3 * DAY).transitions == ()


def test_the_incarnation_goes_on_after_the_silence() -> None:
    """I7: clients that remember it must not go deaf."""
    scope = read_at_noon(incarnation=5)

    change = lifecycle.wake(scope, rules=AZURE, now=NOON + DAY)

    assert change.scope.incarnation == 5


def test_a_setting_gives_azures_reset_of_the_incarnation_after_the_silence() -> None:
    scope = read_at_noon(incarnation=5)

    change = lifecycle.wake(scope, rules=Rules(resets_incarnation=True), now=NOON + DAY)

    assert change.scope.incarnation == 1


def test_what_falls_due_with_the_silence_happens_before_the_scope_is_switched_off() -> None:
    scope = a_scope(an_event(A, not_before=NOON + DAY), last_read_at=NOON)

    change = lifecycle.wake(scope, rules=AZURE, now=NOON + DAY)

    assert names_of_facts(change) == ["Started", "Deactivated"]


def test_an_event_that_began_unseen_stays_unseen_when_somebody_starts_to_read() -> None:
    """I6."""
    scope = lifecycle.schedule(a_scope(active=False), a_new_event(A), rules=AZURE, now=NOON).scope

    after = lifecycle.read(scope, at=NOON + MINUTE).scope
    done = lifecycle.complete(after, A, now=NOON + HOUR).scope

    assert document(after) == document(scope)
    assert document(done) == document(scope)
