"""Every fault, as the SDK meets it. What is on the wire, tests/metadata/test_fault_injection.py says."""

from typing import Any

import pytest

from forewarned.client import RefusedError, ScheduledEvents, UnavailableError
from forewarned.testing import ScheduledEventsService

FAULTS: list[dict[str, Any]] = [
    {"status": 500},
    {"status": 503, "retry_after": "0s"},
    {"status": 410},
    {"status": 429, "retry_after": "0s"},
    {"delay": "10ms"},
    {"kind": "reset"},
    {"kind": "truncated"},
    {"kind": "truncated", "delay": "10ms"},
]


def name(fault: dict[str, Any]) -> str:
    return " ".join(map(str, fault.values()))


@pytest.mark.parametrize("fault", FAULTS, ids=name)
def test_the_sdk_reads_its_document_all_the_same(
    scheduled_events: ScheduledEventsService, fault: dict[str, Any]
) -> None:
    vm = scheduled_events.vm("web_0")
    event = vm.schedule("Reboot")
    added = scheduled_events.faults.add(times=1, **fault)

    with ScheduledEvents(vm.endpoint) as scheduled:
        [read] = scheduled.events()

    assert read.event_id == event.id
    assert added.used == 1


@pytest.mark.parametrize("fault", FAULTS, ids=name)
def test_the_sdk_approves_all_the_same(
    scheduled_events: ScheduledEventsService, fault: dict[str, Any]
) -> None:
    vm = scheduled_events.vm("web_0")
    event = vm.schedule("Reboot")
    added = scheduled_events.faults.add(times=1, method="post", vm="WEB_0", **fault)

    with ScheduledEvents(vm.endpoint) as scheduled:
        scheduled.approve(event.id)

    assert (event.approved_by, event.status) == ("web_0", "Started")
    assert added.used == 1


def test_an_empty_answer_is_no_document_without_events(
    scheduled_events: ScheduledEventsService,
) -> None:
    vm = scheduled_events.vm("web_0")
    vm.schedule("Reboot")
    with ScheduledEvents(vm.endpoint) as scheduled:
        before = scheduled.document()
        scheduled_events.faults.add("empty", times=1)

        assert scheduled.document() == before


def test_a_stale_document_is_shown_until_the_fault_is_removed(
    scheduled_events: ScheduledEventsService,
) -> None:
    vm = scheduled_events.vm("web_0")
    stale = scheduled_events.faults.add("stale")
    vm.schedule("Reboot")
    with ScheduledEvents(vm.endpoint) as scheduled:
        assert scheduled.events() == ()
        stale.remove()
        stale.remove()

        assert len(scheduled.events()) == 1
    assert stale.used == 1
    assert repr(stale) == "<Fault 1 stale, used once>"


def test_a_fault_without_an_end_is_in_the_end_an_error(
    scheduled_events: ScheduledEventsService,
) -> None:
    vm = scheduled_events.vm("web_0")
    scheduled_events.faults.add(403)
    with ScheduledEvents(vm.endpoint) as scheduled:
        with pytest.raises(RefusedError, match="Injected by fault 1: 403"):
            scheduled.events()
        scheduled_events.faults.clear()

        assert scheduled.events() == ()


def test_an_answer_that_comes_too_late_is_none(scheduled_events: ScheduledEventsService) -> None:
    vm = scheduled_events.vm("web_0")
    scheduled_events.faults.add(delay="5m", times=1)
    with ScheduledEvents(vm.endpoint, timeout=0.05, first_timeout=0.05) as scheduled:
        with pytest.raises(UnavailableError):
            scheduled.events()

        assert scheduled.events() == ()
