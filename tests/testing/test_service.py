"""The service as tests use it."""

import json
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from forewarned.client import ScheduledEvents
from forewarned.testing import Request, ScheduledEventsService, WaitTimeoutError, serve

SECOND = timedelta(seconds=1)
MINUTE = 60 * SECOND
DOCUMENT = "/metadata/scheduledevents?api-version=2020-07-01"


def ask(endpoint: str, path: str = DOCUMENT, body: str | None = None, **headers: str) -> int:
    where = urlsplit(endpoint)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=30)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, where.path + path, body, headers or {"Metadata": "true"})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("type_", "notice"),
    [
        ("Freeze", 15 * MINUTE),
        ("Reboot", 15 * MINUTE),
        ("Redeploy", 10 * MINUTE),
        ("Terminate", 10 * MINUTE),
    ],
)
def test_an_event_has_the_notice_of_its_type(
    scheduled_events: ScheduledEventsService, type_: str, notice: timedelta
) -> None:
    vm = scheduled_events.vm("web_0", terminate_notice="10m")

    event = vm.schedule(type_)

    [shown] = vm.document()["Events"]
    assert (shown["EventId"], shown["EventType"]) == (event.id, type_)
    assert event.not_before == scheduled_events.now + notice
    assert event.resources == ("web_0",)
    assert event.is_announced


def test_whatever_is_said_of_an_event_is_in_the_document(
    scheduled_events: ScheduledEventsService,
) -> None:
    vm = scheduled_events.vm()
    words = {"description": "new disk", "source": "User"}

    vm.schedule("reboot", notice="10s", duration=9 * SECOND, **words)

    [shown] = vm.document()["Events"]
    assert (shown["DurationInSeconds"], shown["Description"], shown["EventSource"]) == (
        9,
        "new disk",
        "User",
    )
    assert "EventSource" not in vm.document("2019-01-01")["Events"][0]


def test_time_stands_still_until_it_is_moved() -> None:
    start = datetime(2026, 1, 5, 12, tzinfo=UTC)
    with serve(start=start) as service:
        event = service.vm().schedule("Reboot")
        assert service.now == start
        assert service.advance("14m59s") == start + 15 * MINUTE - SECOND
        assert event.status == "Scheduled"
        service.advance(SECOND)

        assert (event.status, event.start_cause, event.not_before) == (
            "Started",
            "not_before",
            None,
        )
        service.advance("10m")
        assert event.status == "Completed"


@pytest.mark.parametrize("span", [600, 600.0, "600s", "10m", "PT10M", 10 * MINUTE])
def test_a_number_is_seconds(
    scheduled_events: ScheduledEventsService, span: float | str | timedelta
) -> None:
    before = scheduled_events.now

    assert scheduled_events.advance(span) == before + 10 * MINUTE
    event = scheduled_events.vm().schedule("Reboot", notice=span)
    assert event.not_before == scheduled_events.now + 10 * MINUTE


def test_the_endpoint_is_that_of_the_vm_without_a_name(
    scheduled_events: ScheduledEventsService,
) -> None:
    assert ask(scheduled_events.endpoint) == 200

    event = scheduled_events.vm().schedule("Reboot")
    with ScheduledEvents(scheduled_events.endpoint) as scheduled:
        scheduled.approve(*scheduled.events())

    assert event.approved_by == "vm"


def test_the_vm_without_a_name_may_be_made_as_a_test_wants_it(
    scheduled_events: ScheduledEventsService,
) -> None:
    event = scheduled_events.vm(priority="Spot").schedule("Preempt")

    with ScheduledEvents(scheduled_events.endpoint) as scheduled:
        assert [shown.event_id for shown in scheduled.events()] == [event.id]


def test_vms_of_a_set_share_a_document(scheduled_events: ScheduledEventsService) -> None:
    for kind in ("scale_set", "availability_set"):
        one = scheduled_events.vm(f"{kind}-0", **{kind: "web"})  # type: ignore[arg-type]  # a set
        two = scheduled_events.vm(f"{kind}-1", **{kind: "web"})  # type: ignore[arg-type]  # a set
        one.schedule("Freeze")
        assert one.document() == two.document() != {}
    assert scheduled_events.vm("alone").document()["Events"] == []


def test_a_vm_is_made_once(scheduled_events: ScheduledEventsService) -> None:
    spot = scheduled_events.vm("cheap", priority="spot")

    assert scheduled_events.vm("cheap") is spot
    assert scheduled_events.vm("CHEAP", priority="Spot") is spot
    with pytest.raises(ValueError, match="created with priority='Spot'"):
        scheduled_events.vm("cheap", scale_set="web")


def test_vms_may_be_made_by_many_threads(scheduled_events: ScheduledEventsService) -> None:
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(scheduled_events.vm("web"))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 16
    assert len({id(vm) for vm in made}) == 1


def test_nobody_is_told_who_has_never_asked(scheduled_events: ScheduledEventsService) -> None:
    vm = scheduled_events.vm("deaf", active=False)

    event = vm.schedule("Reboot")

    assert not event.is_announced
    assert vm.document()["Events"] == []
    assert (event.status, event.start_cause) != ("Scheduled", None)
    assert ask(vm.endpoint) == 200
    assert vm.schedule("Reboot").is_announced


def test_the_instance_document_names_the_vm(scheduled_events: ScheduledEventsService) -> None:
    with ScheduledEvents(scheduled_events.vm("web_0", scale_set="web").endpoint) as scheduled:
        me = scheduled.me()

    assert (me.name, me.scale_set) == ("web_0", "web")


def test_requests_are_known_one_by_one(scheduled_events: ScheduledEventsService) -> None:
    vm, other = scheduled_events.vm("web_0"), scheduled_events.vm("web_1")
    event = vm.schedule("Reboot")
    approval = json.dumps({"StartRequests": [{"EventId": event.id}]})

    ask(vm.endpoint)
    ask(vm.endpoint)
    ask(vm.endpoint, body=approval)
    ask(vm.endpoint, body="nonsense")
    ask(vm.endpoint, Accept="*/*")
    ask(vm.endpoint, "/metadata/instance?api-version=2021-12-13")

    assert [(request.what, request.status) for request in vm.requests] == [
        ("events", 200),
        ("events", 200),
        ("approve", 200),
        ("approve", 400),
        ("refused", 400),
        ("instance", 200),
    ]
    assert "metadata header" in vm.requests[4].refusal
    assert (vm.polls, vm.approvals, other.requests) == (2, 2, [])
    assert vm.requests[0] == Request(vm="web_0", what="events", status=200)


MISTAKES: dict[str, Callable[[ScheduledEventsService], object]] = {
    "name": lambda service: service.vm("a/b"),
    "two sets": lambda service: service.vm("a", scale_set="s", availability_set="s"),
    "priority": lambda service: service.vm("a", priority="cheap"),
    "terminate notice": lambda service: service.vm("a", terminate_notice="soon"),
    "type": lambda service: service.vm("a").schedule("Nap"),
    "not spot": lambda service: service.vm("a").schedule("Preempt"),
    "notice": lambda service: service.vm("a").schedule("Reboot", notice="never"),
    "not started": lambda service: service.vm("a").schedule("Reboot").complete(),
    "back in time": lambda service: service.advance("-5m"),
    "api-version": lambda service: service.vm("a").document("2099-01-01"),
    "no time": lambda service: service.advance("0s"),
    "kind of fault": lambda service: service.faults.add("gone"),
    "good status": lambda service: service.faults.add(200),
    "no fault": lambda service: service.faults.add(),
    "status twice": lambda service: service.faults.add(500, status=500),
    "kind twice": lambda service: service.faults.add("reset", kind="reset"),
    "unknown VM": lambda service: service.faults.add("reset", vm="nobody"),
    "method": lambda service: service.faults.add("reset", method="PUT"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_of_the_test_is_a_value_error(
    scheduled_events: ScheduledEventsService, what: str
) -> None:
    with pytest.raises(ValueError):
        MISTAKES[what](scheduled_events)


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"), serve(start=datetime(2026, 1, 5)):  # noqa: DTZ001
        pass


def test_a_vm_is_gone_when_its_deletion_is_over(scheduled_events: ScheduledEventsService) -> None:
    vm = scheduled_events.vm("web_0", scale_set="web", terminate_notice="5m")
    event = vm.schedule("Terminate")

    event.approve()
    scheduled_events.advance("10s")

    assert (event.approved_by, event.status) == ("test", "Completed")
    assert ask(vm.endpoint) == 404
    with pytest.raises(ValueError, match="gone"):
        vm.document()


@pytest.mark.parametrize("priority", ["Regular", "Spot"])
def test_a_vm_without_terminate_notice_is_deleted_at_once_and_told_nothing(
    scheduled_events: ScheduledEventsService, priority: str
) -> None:
    """As Azure deletes VMs whose model has the notification off; Spot VMs have none."""
    vm = scheduled_events.vm("web_0", scale_set="web", priority=priority)
    other = scheduled_events.vm("web_1", scale_set="web")
    before = other.document()

    event = vm.schedule("Terminate")

    assert (event.status, event.is_announced, event.approved_by) == ("Completed", False, None)
    assert ask(vm.endpoint) == 404
    assert other.document() == before
    with pytest.raises(WaitTimeoutError, match=r"it was not announced: .*terminate_notice='5m'"):
        event.wait_approved(timeout=60)


def test_a_terminate_with_a_notice_of_its_own_gives_that(
    scheduled_events: ScheduledEventsService,
) -> None:
    vm = scheduled_events.vm("web_0")

    event = vm.schedule("Terminate", notice="7m")

    assert event.not_before == scheduled_events.now + 7 * MINUTE
    assert [shown["EventId"] for shown in vm.document()["Events"]] == [event.id]


def test_when_it_is_over_nothing_listens_and_nothing_answers() -> None:
    with serve() as service:
        vm = service.vm()
        where = urlsplit(service.endpoint)
    threads = {thread.name for thread in threading.enumerate()}

    with pytest.raises(RuntimeError, match="is closed"):
        vm.schedule("Reboot")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((where.hostname or "", where.port or 0))
    assert "forewarned.testing" not in threads


def test_two_at_a_time_know_nothing_of_each_other() -> None:
    with serve() as one, serve() as two:
        one.vm("web").schedule("Reboot")

        assert two.vm("web").document()["Events"] == []
        assert one.endpoint != two.endpoint


def test_a_poll_that_waits_does_not_keep_the_end_waiting() -> None:
    with serve() as service:
        vm = service.vm()
        path = f"{DOCUMENT}&wait=5m&last-incarnation=1"
        waiting = threading.Thread(target=ask, args=(vm.endpoint, path))
        waiting.start()
        vm.wait_polled()
    waiting.join(timeout=30)

    assert not waiting.is_alive()
