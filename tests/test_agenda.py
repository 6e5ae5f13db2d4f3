"""What is kept of timers: those that are to be called, and few others."""

from weakref import WeakSet

from forewarned.clock import Agenda, Call
from tests.builders import HOUR, NOON, SECOND


class Calls:
    """Calls that can be told apart, and of which it is known which are still referred to."""

    def __init__(self) -> None:
        self.alive: WeakSet[Call] = WeakSet()

    def new(self) -> Call:
        async def call() -> None:
            pass

        self.alive.add(call)
        return call


def taken(agenda: Agenda) -> list[Call]:
    """All that are to come, in order."""
    found = []
    while agenda.next_at() is not None:
        found.append(agenda.take())
    return found


def test_canceled_timers_are_forgotten_long_before_they_would_be_due() -> None:
    agenda, calls = Agenda(), Calls()
    kept = [calls.new() for _ in range(10)]
    for each in kept:
        agenda.add(NOON + HOUR, each)
        for _ in range(100):
            agenda.add(NOON + HOUR, calls.new()).cancel()

    assert len(calls.alive) < 100
    assert taken(agenda) == kept


def test_timers_of_which_most_go_on_are_not_looked_through_for_each_that_is_canceled() -> None:
    agenda, calls = Agenda(), Calls()
    timers = [agenda.add(NOON + HOUR, calls.new()) for _ in range(1_000)]

    for timer in timers[:400]:
        timer.cancel()

    assert len(calls.alive) == 1_000
    assert len(taken(agenda)) == 600


def test_timers_that_are_canceled_after_their_calls_or_twice_are_not_taken_for_others() -> None:
    agenda, calls = Agenda(), Calls()
    over = [agenda.add(NOON, calls.new()) for _ in range(100)]
    taken(agenda)
    to_come = [agenda.add(NOON + HOUR, calls.new()) for _ in range(100)]
    first = to_come[0]

    for timer in (*over, *[first] * 100):
        timer.cancel()

    assert len(calls.alive) == 200
    assert taken(agenda) == [timer.call for timer in to_come[1:]]


def test_those_that_come_to_their_turn_while_canceled_make_room_for_as_many() -> None:
    agenda, calls = Agenda(), Calls()
    for _ in range(10):
        for _ in range(60):
            agenda.add(NOON, calls.new()).cancel()
        agenda.add(NOON + SECOND, calls.new())
        assert agenda.next_at() == NOON + SECOND

    assert len(calls.alive) == 10
