"""Scenarios and observations that name only what matters to a test."""

from datetime import UTC, datetime, timedelta

from forewarned.core.ids import EventId
from forewarned.scenarios.file import parse
from forewarned.scenarios.model import Scenario, What
from forewarned.scenarios.observations import Fact, Observation, Request, StepBegan, StepEnded

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
EVENT = EventId("A" * 8 + "-0000-4000-8000-000000000000")
PATH = "/metadata/scheduledevents?api-version=2020-07-01"
TRUE = (("metadata", "true"),)


def a_scenario(expect: str) -> Scenario:
    """Step 0 makes the event `reboot`, step 1 is named `later`."""
    return parse(
        f"""
        name = "it"
        title = "It"

        [[step]]
        do = "schedule"
        name = "reboot"
        type = "Reboot"

        [[step]]
        do = "advance"
        name = "later"
        by = "1m"

        [[expect]]
        {expect}
        """
    )


def at(seconds: float, fact: Fact) -> Observation:
    return Observation(at=timedelta(seconds=seconds), clock_at=NOON, fact=fact)


def step(seconds: float, index: int, *events: EventId, took: float = 0) -> tuple[Observation, ...]:
    return (
        at(seconds, StepBegan(index=index)),
        at(seconds + took, StepEnded(index=index, events=events)),
    )


def read(status: int | None = 200, **more: object) -> Request:
    request = {"vm": "vm", "what": What.EVENTS, "method": "GET", "target": PATH, "headers": TRUE}
    return Request(status=status, **(request | more))  # type: ignore[arg-type]  # a test names what it likes


def approval(status: int | None = 200, event_id: EventId = EVENT) -> Request:
    return read(status, what=What.APPROVE, method="POST", approves=(event_id,))
