"""Who completes events, as the whole server puts it together. The sentences: tests/control/v1/test_explain.py."""

import pytest

from forewarned.core.ids import ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.core.rules import Rules
from forewarned.service.events.schedule import EventOrder
from tests.builders import NOON, OPERATOR
from tests.stateful.fleet import plan
from tests.stateful.observer import Observer
from tests.stateful.stack import MemoryStack

REBOOT = EventOrder(
    type=EventType.REBOOT, resources=(ResourceName("solo"),), source=EventSource.PLATFORM
)


@pytest.mark.parametrize(
    ("is_simulated", "waits_for"),
    [
        (True, "the simulated work to finish"),
        (False, "actuator rack1 to claim the task of VM solo"),
    ],
    ids=["emulator", "service"],
)
def test_a_started_event_waits_for_what_carries_it_out(
    *, is_simulated: bool, waits_for: str
) -> None:
    observer = Observer(MemoryStack, start=NOON, rules=Rules(), is_simulated=is_simulated)
    try:
        app = observer.stack.use_cases
        observer.expect(app.fleet.apply(plan(), by=OPERATOR))
        observer.poll("solo")
        observer.expect(app.scheduler.schedule(REBOOT, by=OPERATOR))
        [waiting] = observer.oracle.waiting()
        observer.approve("solo", [waiting.event.id])

        explained = observer.run(app.explainer.explain(waiting.event.id))
    finally:
        observer.close()

    assert explained.waits_for == (waits_for,)
