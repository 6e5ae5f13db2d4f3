"""Waiting for what a handler does, and what is said when it does not."""

import asyncio
import threading

import pytest

from forewarned.client import AsyncScheduledEvents, ScheduledEvents
from forewarned.testing import ScheduledEventsService, Vm, WaitTimeoutError
from tests.testing.test_service import ask

SHORT = 0.01


def approve_all(vm: Vm) -> None:
    with ScheduledEvents(vm.endpoint) as scheduled:
        scheduled.approve(*scheduled.events())


def test_an_approval_ends_the_wait_for_it(scheduled_events: ScheduledEventsService) -> None:
    vm = scheduled_events.vm("web_0")
    event = vm.schedule("Reboot")
    handler = threading.Thread(target=approve_all, args=(vm,))

    handler.start()
    event.wait_approved()
    event.wait_started()
    handler.join()

    assert (event.approved_by, event.start_cause) == ("web_0", "approved")


def test_the_end_of_an_event_ends_the_wait_for_it(scheduled_events: ScheduledEventsService) -> None:
    event = scheduled_events.vm().schedule("Reboot")
    over = threading.Thread(target=event.wait_gone)

    over.start()
    scheduled_events.advance("1h")
    over.join(timeout=30)

    assert not over.is_alive()
    assert event.status == "Completed"


def test_a_wait_in_vain_says_how_things_stand(scheduled_events: ScheduledEventsService) -> None:
    vm = scheduled_events.vm("web_0")
    event = vm.schedule("Reboot")
    ask(vm.endpoint)
    ask(vm.endpoint, Accept="*/*")

    with pytest.raises(WaitTimeoutError) as failure:
        event.wait_approved(timeout=SHORT)

    said = str(failure.value)
    assert f"<Event Reboot Scheduled of web_0: {event.id}> has not been approved" in said
    assert f"the clock is at {scheduled_events.now:%Y-%m-%d %H:%M:%S}" in said
    assert "1 × web_0: events answered 200" in said
    assert "1 × web_0: refused with 400 (Bad request: . Required metadata header" in said


def test_a_handler_that_asks_nothing_is_told_apart(
    scheduled_events: ScheduledEventsService,
) -> None:
    event = scheduled_events.vm().schedule("Reboot")

    with pytest.raises(
        AssertionError, match=r"there have been no requests so far: .* vm\.endpoint"
    ):
        event.wait_gone(timeout=SHORT)


def test_what_can_not_happen_any_more_is_not_waited_for(
    scheduled_events: ScheduledEventsService,
) -> None:
    """With the usual time-out this would take ten seconds."""
    late, off = (scheduled_events.vm(name).schedule("Reboot") for name in ("late", "off"))
    off.cancel("not today")
    scheduled_events.advance("15m")

    with pytest.raises(WaitTimeoutError, match="was never approved"):
        late.wait_approved(timeout=60)
    with pytest.raises(WaitTimeoutError, match="was never approved"):
        off.wait_approved(timeout=60)
    with pytest.raises(WaitTimeoutError, match="was canceled"):
        off.wait_started(timeout=60)


def test_reads_are_waited_for(scheduled_events: ScheduledEventsService) -> None:
    vm = scheduled_events.vm("web_0")
    ask(vm.endpoint)

    vm.wait_polled()
    with pytest.raises(WaitTimeoutError, match="web_0 has not read its document twice within"):
        vm.wait_polled(2, timeout=SHORT)


async def test_a_test_with_an_event_loop_of_its_own(
    scheduled_events: ScheduledEventsService, anyio_backend: object
) -> None:
    vm = scheduled_events.vm("web_0")

    async def handle() -> str:
        async with AsyncScheduledEvents(vm.endpoint) as scheduled:
            async for change in scheduled.watch():
                await scheduled.approve(change.event)
                return change.event.event_id
        return ""

    handler = asyncio.create_task(handle())
    event = vm.schedule("Freeze")
    await asyncio.to_thread(event.wait_approved)

    assert await handler == event.id
