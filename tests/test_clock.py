import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.clock import SystemClock, VirtualClock, monotonic, wall_clock
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND

MICROSECOND = timedelta(microseconds=1)
PAUSED = 0


def paused(start: datetime = NOON) -> VirtualClock:
    return VirtualClock(start, speed=PAUSED)


def let_real_time_pass() -> None:
    """The least that the machine can tell from nothing, and a little more."""
    enough = monotonic() + 100 * MICROSECOND
    while monotonic() < enough:
        pass


class Bell(asyncio.Event):
    """A timer that can be waited for."""

    async def ring(self) -> None:
        self.set()


class Diary:
    """Timers that write down that they were called, and what time it was."""

    def __init__(self, clock: SystemClock | VirtualClock) -> None:
        self.entries: list[tuple[str, datetime]] = []
        self._clock = clock

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.entries]

    def note(self, name: str) -> Callable[[], Awaitable[None]]:
        async def call() -> None:
            self.entries.append((name, self._clock.now()))

        return call


def paused_with_diary() -> tuple[VirtualClock, Diary]:
    clock = paused()
    return clock, Diary(clock)


async def let_others_run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


# --- a clock that people move --------------------------------------------------------------------


async def test_a_step_moves_the_clock_by_as_much_as_it_says() -> None:
    clock = paused()

    await clock.step(14 * MINUTE + 59 * SECOND)

    assert clock.now() == NOON + 14 * MINUTE + 59 * SECOND


async def test_a_step_calls_timers_in_order_each_at_its_own_instant() -> None:
    clock, diary = paused_with_diary()
    clock.at(NOON + 2 * MINUTE, diary.note("later"))
    clock.at(NOON + MINUTE, diary.note("sooner"))

    await clock.step(HOUR)

    assert diary.entries == [("sooner", NOON + MINUTE), ("later", NOON + 2 * MINUTE)]


async def test_timers_of_one_instant_are_called_in_the_order_they_were_set() -> None:
    clock, diary = paused_with_diary()
    for name in "bac":
        clock.at(NOON + MINUTE, diary.note(name))

    await clock.step(MINUTE)

    assert diary.names == ["b", "a", "c"]


async def test_a_step_calls_what_is_due_at_its_end_and_nothing_beyond() -> None:
    """I1, I20."""
    clock, diary = paused_with_diary()
    clock.at(NOON + MINUTE, diary.note("at the end"))
    clock.at(NOON + MINUTE + MICROSECOND, diary.note("beyond"))

    await clock.step(MINUTE)
    first = list(diary.names)
    await clock.step(SECOND)

    assert first == ["at the end"]
    assert diary.names == ["at the end", "beyond"]


async def test_a_timer_set_by_a_timer_is_called_within_the_same_step() -> None:
    clock, diary = paused_with_diary()

    async def set_another() -> None:
        clock.at(clock.now() + MINUTE, diary.note("soon"))
        clock.at(clock.now(), diary.note("at once"))
        clock.at(clock.now() + DAY, diary.note("after the step"))

    clock.at(NOON + MINUTE, set_another)

    await clock.step(HOUR)

    assert diary.entries == [("at once", NOON + MINUTE), ("soon", NOON + 2 * MINUTE)]


async def test_a_timer_that_was_overdue_is_called_by_the_next_step_without_going_back() -> None:
    clock, diary = paused_with_diary()
    clock.at(NOON - HOUR, diary.note("overdue"))

    await clock.step(SECOND)

    assert diary.entries == [("overdue", NOON)]


async def test_a_canceled_timer_is_not_called() -> None:
    clock, diary = paused_with_diary()
    first = clock.at(NOON + MINUTE, diary.note("canceled"))
    clock.at(NOON + MINUTE, diary.note("kept"))
    first.cancel()

    await clock.step(HOUR)

    assert diary.names == ["kept"]


async def test_canceling_a_timer_after_its_call_changes_nothing() -> None:
    clock, diary = paused_with_diary()
    timer = clock.at(NOON + MINUTE, diary.note("once"))
    await clock.step(MINUTE)

    timer.cancel()
    await clock.step(HOUR)

    assert diary.names == ["once"]


async def test_a_timer_canceled_by_an_earlier_one_is_not_called() -> None:
    clock, diary = paused_with_diary()

    async def cancel() -> None:
        later.cancel()

    clock.at(NOON + MINUTE, cancel)
    later = clock.at(NOON + MINUTE, diary.note("canceled"))

    await clock.step(HOUR)

    assert diary.names == []


async def test_a_timer_that_fails_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, diary = paused_with_diary()

    async def fail() -> None:
        raise ValueError

    clock.at(NOON + MINUTE, fail)
    clock.at(NOON + MINUTE, diary.note("next"))

    await clock.step(HOUR)

    assert diary.names == ["next"]
    assert clock.now() == NOON + HOUR
    assert [record.message for record in caplog.records] == ["a timer failed"]


async def test_a_paused_clock_never_moves_by_itself() -> None:
    clock = paused()

    async with clock:
        let_real_time_pass()
        await asyncio.sleep(0)

        assert clock.now() == NOON
        assert clock.speed == 0


async def test_a_paused_clock_calls_what_is_due_already() -> None:
    clock = paused()
    bell = Bell()

    async with clock:
        clock.at(NOON, bell.ring)

        await bell.wait()

    assert clock.now() == NOON


async def test_a_step_that_is_broken_off_leaves_time_where_it_got_to() -> None:
    clock, diary = paused_with_diary()
    reached = asyncio.Event()

    async def wait_forever() -> None:
        reached.set()
        await asyncio.Event().wait()

    clock.at(NOON + MINUTE, wait_forever)
    clock.at(NOON + 2 * MINUTE, diary.note("later"))
    step = asyncio.create_task(clock.step(HOUR))
    await reached.wait()

    step.cancel()
    with suppress(asyncio.CancelledError):
        await step

    assert clock.now() == NOON + MINUTE
    assert diary.names == []
    await clock.step(MINUTE)
    assert diary.entries == [("later", NOON + 2 * MINUTE)]


async def test_two_steps_at_once_go_one_after_the_other() -> None:
    clock, diary = paused_with_diary()
    clock.at(NOON + 30 * MINUTE, diary.note("first"))
    clock.at(NOON + 90 * MINUTE, diary.note("second"))

    await asyncio.gather(clock.step(HOUR), clock.step(HOUR))

    assert clock.now() == NOON + 2 * HOUR
    assert diary.entries == [("first", NOON + 30 * MINUTE), ("second", NOON + 90 * MINUTE)]


async def test_a_step_calls_no_timer_twice_when_the_clock_also_runs() -> None:
    """I5."""
    clock = VirtualClock(NOON, speed=1)
    diary = Diary(clock)
    for minute in range(1, 30):
        clock.at(NOON + minute * MINUTE, diary.note(str(minute)))

    async with clock:
        await clock.step(HOUR)

    assert diary.names == [str(minute) for minute in range(1, 30)]


async def test_a_timer_that_falls_due_while_a_step_is_under_way_is_called_by_the_step_alone() -> (
    None
):
    """I5."""
    clock, diary = paused_with_diary()

    async def set_another_and_let_the_clock_see_it() -> None:
        clock.at(clock.now(), diary.note("another"))
        await let_others_run()

    async with clock:
        clock.at(NOON + MINUTE, set_another_and_let_the_clock_see_it)
        await clock.step(HOUR)
        await let_others_run()

    assert diary.entries == [("another", NOON + MINUTE)]


@given(st.lists(st.integers(min_value=-5, max_value=70), max_size=20))
async def test_however_timers_are_set_they_are_called_in_order_and_time_never_goes_back(
    minutes: list[int],
) -> None:
    clock, diary = paused_with_diary()
    for number, minute in enumerate(minutes):
        clock.at(NOON + minute * MINUTE, diary.note(f"{number}"))

    await clock.step(HOUR)

    due = [(minute, number) for number, minute in enumerate(minutes) if minute <= 60]
    assert diary.entries == [
        (f"{number}", NOON + max(minute, 0) * MINUTE) for minute, number in sorted(due)
    ]


# --- where a virtual clock stands ----------------------------------------------------------------


@pytest.mark.parametrize("fraction", [MICROSECOND, SECOND / 2, SECOND - MICROSECOND])
async def test_a_virtual_clock_stands_on_whole_seconds_so_that_a_step_by_the_notice_gets_there(
    fraction: timedelta,
) -> None:
    """I1: NotBefore is a whole second, rounded up."""
    clock = paused(NOON + fraction)

    await clock.step(15 * MINUTE - fraction)

    assert clock.now() == NOON + SECOND + 15 * MINUTE


async def test_pausing_a_running_clock_takes_it_to_the_next_whole_second() -> None:
    clock = VirtualClock(NOON, speed=1)
    before = clock.now()

    await clock.run(PAUSED)

    assert clock.now().microsecond == 0
    assert clock.now() >= before


async def test_a_virtual_clock_starts_at_real_time_unless_told_otherwise() -> None:
    before = wall_clock()
    clock = VirtualClock(speed=PAUSED)
    after = wall_clock()

    assert before <= clock.now() < after + SECOND
    assert clock.now().tzinfo is UTC


async def test_a_virtual_clock_runs_as_many_times_as_fast_as_it_was_told() -> None:
    clock = paused()
    earliest = monotonic()
    await clock.run(60)
    latest = monotonic()

    lower, now, upper = monotonic(), clock.now(), monotonic()

    assert clock.speed == 60
    assert (lower - latest) * 60 <= now - NOON <= (upper - earliest) * 60


async def test_a_change_of_speed_goes_on_from_where_the_clock_is() -> None:
    clock = VirtualClock(NOON, speed=1_000_000)
    before = clock.now()

    await clock.run(0.001)
    after = clock.now()

    assert after >= before
    assert clock.now() - after < MINUTE


async def test_a_fast_clock_calls_a_timer_of_tomorrow_soon() -> None:
    clock = VirtualClock(NOON, speed=10_000_000)
    bell = Bell()

    async with clock:
        clock.at(NOON + DAY, bell.ring)

        await bell.wait()

    assert clock.now() >= NOON + DAY


async def test_a_clock_that_is_resumed_calls_what_waited() -> None:
    clock = paused()
    bell = Bell()

    async with clock:
        clock.at(NOON + DAY, bell.ring)
        await asyncio.sleep(0)
        assert not bell.is_set()

        await clock.run(10_000_000)

        await bell.wait()


async def test_a_step_of_a_running_clock_leaves_it_running() -> None:
    clock = VirtualClock(NOON, speed=1000)

    await clock.step(HOUR)

    stepped = clock.now()
    assert stepped >= NOON + HOUR
    assert clock.speed == 1000
    let_real_time_pass()
    assert clock.now() > stepped


@pytest.mark.parametrize(
    ("last", "expected"),
    [(NOON + HOUR, NOON + HOUR), (NOON - HOUR, NOON), (NOON + MICROSECOND, NOON + SECOND)],
)
async def test_a_virtual_clock_catches_up_with_the_last_instant_on_record_and_never_goes_back(
    last: datetime, expected: datetime
) -> None:
    """I4, F17."""
    clock = paused()

    clock.catch_up(last)

    assert clock.now() == expected


# --- real time -----------------------------------------------------------------------------------


async def test_the_system_clock_starts_at_the_wall_clock() -> None:
    before = wall_clock()

    assert before <= SystemClock().now() <= before + MINUTE


async def test_the_system_clock_goes_on_by_the_monotonic_clock_whatever_the_wall_clock_says() -> (
    None
):
    """I4: this one is a year away from the wall clock, as if that had been set back."""
    clock = SystemClock()
    ahead = wall_clock() + 365 * DAY
    clock.catch_up(ahead)

    earliest, first, lower = monotonic(), clock.now(), monotonic()
    let_real_time_pass()
    upper, second, latest = monotonic(), clock.now(), monotonic()

    assert first >= ahead
    assert upper - lower <= second - first <= latest - earliest


async def test_the_system_clock_starts_no_earlier_than_the_last_instant_on_record() -> None:
    """I4, F10: a wall clock that was set back while the server was down starts nothing early."""
    clock = SystemClock()
    recorded = clock.now() + HOUR

    clock.catch_up(recorded)
    caught_up = clock.now()
    clock.catch_up(recorded - DAY)

    assert recorded <= caught_up <= recorded + MINUTE
    assert clock.now() >= caught_up


async def test_the_system_clock_calls_what_is_due_at_once_and_in_order() -> None:
    clock = SystemClock()
    diary = Diary(clock)
    bell = Bell()
    now = clock.now()
    clock.at(now, diary.note("second"))
    clock.at(now - SECOND, diary.note("first"))
    clock.at(now, bell.ring)

    async with clock:
        await bell.wait()

    assert diary.names == ["first", "second"]


async def test_the_system_clock_calls_a_timer_no_sooner_than_its_instant() -> None:
    """I1."""
    clock = SystemClock()
    diary, bell = Diary(clock), Bell()

    async with clock:
        instant = clock.now() + timedelta(milliseconds=5)
        clock.at(instant, diary.note("on time"))
        clock.at(instant, bell.ring)
        await bell.wait()

    [(_, called_at)] = diary.entries
    assert called_at >= instant


async def test_a_nearer_timer_is_not_kept_waiting_by_one_far_away() -> None:
    clock = SystemClock()
    bell = Bell()
    too_early = Bell()

    async with clock:
        clock.at(clock.now() + 90 * DAY, too_early.ring)
        await asyncio.sleep(0)
        clock.at(clock.now(), bell.ring)

        await bell.wait()

    assert not too_early.is_set()


async def test_a_clock_that_was_left_calls_nobody() -> None:
    clock = SystemClock()
    bell = Bell()

    async with clock:
        pass
    clock.at(clock.now(), bell.ring)
    await let_others_run()

    assert not bell.is_set()


async def test_a_clock_that_was_never_entered_can_be_left() -> None:
    await SystemClock().__aexit__(None, None, None)
