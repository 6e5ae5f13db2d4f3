"""The simulated actuator reports what it pretends to do, when it would have done it."""

from dataclasses import replace

import pytest

from notbefore.actuators.simulated import SimulatedActuator, Timing
from notbefore.clock import VirtualClock
from notbefore.core.ids import EventId, ScopeId
from notbefore.core.model import Event, EventStatus, EventType
from notbefore.service.ports import StoreUnavailableError
from tests.builders import MINUTE, NOON, SECOND, A, B, an_event, event_id

SCOPE1 = ScopeId("scope1")
TIMINGS = {type_: Timing(impact=MINUTE, span=10 * MINUTE) for type_ in EventType}


class Listening:
    """Writes reports down; fails for the events it is told to, as often as it is told to."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.heard: list[tuple[float, str, EventId]] = []
        self.failures: dict[EventId, list[Exception]] = {}

    async def interrupted(self, scope_id: ScopeId, event_id: EventId) -> None:
        await self._hear("interrupted", event_id)

    async def restored(self, scope_id: ScopeId, event_id: EventId) -> None:
        await self._hear("restored", event_id)

    async def completed(self, scope_id: ScopeId, event_id: EventId) -> None:
        await self._hear("completed", event_id)

    async def _hear(self, what: str, event_id: EventId) -> None:
        if self.failures.get(event_id):
            raise self.failures[event_id].pop()
        self.heard.append(((self._clock.now() - NOON).total_seconds(), what, event_id))


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


async def test_a_report_that_the_store_could_not_take_is_made_again_and_only_that(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    """F4, I22"""
    listening.failures[A] = [StoreUnavailableError("full"), StoreUnavailableError("full")]
    actuator.begin(SCOPE1, started(A))
    actuator.begin(SCOPE1, started(B))

    await clock.step(5 * SECOND)

    assert listening.heard == [(0, "interrupted", B), (2, "interrupted", A)]


async def test_a_report_that_fails_for_good_keeps_no_other_from_being_made_again(
    clock: VirtualClock, listening: Listening, actuator: SimulatedActuator
) -> None:
    listening.failures = {A: [KeyError("bug")], B: [StoreUnavailableError("full")]}
    actuator.begin(SCOPE1, started(A))
    actuator.begin(SCOPE1, started(B))

    await clock.step(5 * SECOND)

    assert listening.heard == [(1, "interrupted", B)]
