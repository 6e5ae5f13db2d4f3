"""Clocks among several machines: the node's follows the store's, and does not believe it blindly."""

from datetime import timedelta

from forewarned.clock import ClockGuard, SystemClock, wall_clock
from tests.builders import HOUR, MINUTE, NOON, SECOND

MICROSECOND = timedelta(microseconds=1)


async def test_a_clock_begins_at_the_stores_time_whatever_the_machine_says() -> None:
    """I4: the machine's clock may be wrong by minutes in either direction."""
    for wrong in (-5 * MINUTE, 5 * MINUTE):
        clock = SystemClock()
        store = clock.now() + wrong
        clock.begin_at(store)

        assert store <= clock.now() < store + MINUTE


async def test_a_clock_follows_the_stores_forward_and_never_back() -> None:
    clock = SystemClock()
    moves = 0

    def moved() -> None:
        nonlocal moves
        moves += 1

    clock.watch(moved)
    ahead = clock.now() + MINUTE
    clock.follow(ahead)
    clock.follow(ahead - HOUR)
    clock.follow(clock.now() + 10 * MICROSECOND)

    assert ahead <= clock.now() < ahead + MINUTE
    assert moves == 1


async def test_a_store_whose_clock_is_ahead_of_both_of_the_machines_is_noticed() -> None:
    """I1, I4: what starts early can't be taken back."""
    guard = ClockGuard()

    assert guard.lead(wall_clock()) <= SECOND
    assert guard.lead(wall_clock() + HOUR) > 59 * MINUTE
    assert guard.lead(wall_clock() - HOUR) < timedelta(0)


def test_a_wall_clock_that_is_set_back_makes_no_store_seem_ahead() -> None:
    """I20: the machine's other clock goes on from where it was when the guard began."""
    wall, steady = NOON, 7 * HOUR
    guard = ClockGuard(wall=lambda: wall, steady=lambda: steady)
    wall, steady = NOON - 5 * MINUTE, steady + MINUTE

    assert guard.lead(NOON + MINUTE) == timedelta(0)
    assert guard.lead(NOON + 2 * MINUTE) == MINUTE
