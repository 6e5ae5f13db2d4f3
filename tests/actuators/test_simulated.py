"""The simulated actuator reports what it pretends to do, when it would have done it."""

from dataclasses import replace

import pytest

from forewarned.actuators.simulated import SimulatedActuator, Timing
from forewarned.clock import VirtualClock
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import Event, EventStatus, EventType
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import StageReport
from tests.builders import MINUTE, NOON, SECOND, A, B, C, an_event, event_id

SCOPE1 = ScopeId("scope1")
TIMINGS = {type_: Timing(impact=MINUTE, span=10 * MINUTE) for type_ in EventType}


class Listening:
    """Writes reports down; fails for the events it is told to, as often as it is told to."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.heard: list[tuple[float, str, EventId]] = []
        self.calls = 0
        self.failures: dict[EventId, list[Exception]] = {}

    async def report(self, *reports: StageReport) -> None:
        self.calls += 1
        for report in reports:
            if self.failures.get(report.event_id):
                raise self.failures[report.event_id].pop()
        at = (self._clock.now() - NOON).total_seconds()
        self.heard += [(at, report.stage, report.event_id) for report in reports]


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock(NOON, speed=0)


@pytest.fixture
async def listening(clock: VirtualClock) -> Listening:
    return Listening(clock)


@pytest.fixture
async def actuator(clock: VirtualClock, listening: Listening) -> SimulatedActuator:
    return SimulatedActuator(clock, listening, TIMINGS)


def started(id: EventId = A, *, type: EventType = EventType.REBOOT) -> Event:
    return replace(an_event(id, type=type, status=EventStatus.STARTED), started_at=NOON)


async def test_vms_are_interrupted_then_restored_then_the_event_completes(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    actuator.begin(SCOPE1, started())

    await clock.step(20 * MINUTE)

    assert listening.heard == [(0, "interrupted", A), (60, "restored", A), (600, "completed", A)]


async def test_what_an_event_takes_away_is_not_restored(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    actuator.begin(SCOPE1, started(type=EventType.TERMINATE))

    await clock.step(20 * MINUTE)

    assert [what for _, what, _ in listening.heard] == ["interrupted", "completed"]


async def test_the_event_itself_says_how_long_its_impact_is(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    actuator.begin(SCOPE1, replace(started(), duration=15 * MINUTE))
    actuator.begin(SCOPE1, replace(started(B), duration=0 * SECOND))

    await clock.step(20 * MINUTE)

    assert listening.heard == [
        (0, "interrupted", A),
        (600, "completed", B),
        (900, "restored", A),
        (900, "completed", A),
    ]


async def test_events_that_start_together_are_reported_in_the_order_they_were_taken_up(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    ids = [event_id(number) for number in range(1, 101)]
    for id in ids:
        actuator.begin(SCOPE1, started(id))

    await clock.step(SECOND)

    assert listening.heard == [(0, "interrupted", id) for id in ids]
    assert listening.calls == 1


async def test_what_has_become_due_while_the_server_was_down_is_reported_in_order(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    """F1, I22"""
    await clock.step(5 * MINUTE)
    actuator.begin(SCOPE1, started(B))
    actuator.begin(SCOPE1, replace(started(A), started_at=NOON - MINUTE))

    await clock.step(SECOND)

    assert [(stage, id) for _, stage, id in listening.heard] == [
        ("interrupted", A),
        ("interrupted", B),
        ("restored", A),
        ("restored", B),
    ]


async def test_no_end_of_reports_is_made_at_once(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    for number in range(2_500):
        actuator.begin(SCOPE1, started(event_id(number)))

    await clock.step(SECOND)

    assert (len(listening.heard), listening.calls) == (2_500, 3)


async def test_reports_that_the_store_could_not_take_are_made_again(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    """F4, I22"""
    listening.failures[A] = [StoreUnavailableError("full"), StoreUnavailableError("full")]
    actuator.begin(SCOPE1, started(A))
    actuator.begin(SCOPE1, started(B))

    await clock.step(5 * SECOND)

    assert listening.heard == [(2, "interrupted", A), (2, "interrupted", B)]


async def test_a_report_that_fails_for_good_takes_no_other_with_it(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    listening.failures = {A: [KeyError("bug"), KeyError("bug")]}
    actuator.begin(SCOPE1, started(A))
    actuator.begin(SCOPE1, started(B))
    actuator.begin(SCOPE1, started(C))

    await clock.step(5 * SECOND)

    assert listening.heard == [(0, "interrupted", B), (0, "interrupted", C)]


async def test_what_nobody_was_told_of_is_over_as_soon_as_it_has_begun(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    actuator.begin(SCOPE1, replace(started(), announced=False))

    await clock.step(SECOND)

    assert listening.heard == [(0, "completed", A)]
