"""Passing connections on, as those of one VM."""

import asyncio
import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread
from urllib.parse import urlsplit

import pytest

from forewarned.sandbox.relay import relaying
from forewarned.testing import ScheduledEventsService, Vm

DOCUMENT = "/metadata/scheduledevents?api-version=2020-07-01"
HEADERS = {"Metadata": "true"}
A_POLL = f"GET {DOCUMENT} HTTP/1.1\r\nHost: 127.0.0.1\r\nMetadata: true\r\n\r\n".encode()


@contextmanager
def relayed(endpoint: str, prefix: str) -> Iterator[tuple[str, int]]:
    """A relay on a thread of its own, and where it listens."""
    where = urlsplit(endpoint)
    listener = socket.create_server(("127.0.0.1", 0))
    running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def relay() -> None:
        stop = asyncio.Event()
        async with relaying(listener, where.hostname or "", where.port or 0, prefix=prefix):
            running.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = Thread(target=lambda: asyncio.run(relay()))
    thread.start()
    loop, stop = running.result()
    try:
        yield listener.getsockname()
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture
def vm(scheduled_events: ScheduledEventsService) -> Vm:
    return scheduled_events.vm("web_0")


@pytest.fixture
def door(scheduled_events: ScheduledEventsService, vm: Vm) -> Iterator[tuple[str, int]]:
    with relayed(scheduled_events.endpoint, f"/vm/{vm.name}") as address:
        yield address


@pytest.fixture
def client(door: tuple[str, int]) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(*door, timeout=30)
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def _nothing_came_as_somebody_else(
    scheduled_events: ScheduledEventsService, vm: Vm
) -> Iterator[None]:
    """A request without its prefix would be the default VM's. What is no request is nobody's."""
    yield
    assert {request.what for request in scheduled_events.vm().requests} <= {"refused"}


def raw(door: tuple[str, int], text: bytes) -> bytes:
    """All that comes back until the server closes, or says nothing more."""
    with socket.create_connection(door, timeout=30) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def test_requests_of_one_connection_are_all_the_vms(vm: Vm, client: HTTPConnection) -> None:
    event = vm.schedule("Reboot")
    approval = json.dumps({"StartRequests": [{"EventId": event.id}]})

    for method, body in (("GET", None), ("POST", approval), ("GET", None)):
        client.request(method, DOCUMENT, body, HEADERS)
        response = client.getresponse()
        response.read()
        assert (response.status, response.will_close) == (200, False)

    assert event.approved_by == "web_0"
    assert [request.what for request in vm.requests] == ["events", "approve", "events"]


def test_a_body_in_chunks_is_followed_to_its_end(vm: Vm, client: HTTPConnection) -> None:
    event = vm.schedule("Reboot")
    body = json.dumps({"StartRequests": [{"EventId": event.id}]}).encode()

    client.request("POST", DOCUMENT, iter([body[:9], body[9:]]), HEADERS, encode_chunked=True)
    approved = client.getresponse()
    approved.read()
    client.request("GET", DOCUMENT, headers=HEADERS)

    assert (approved.status, client.getresponse().status) == (200, 200)
    assert event.approved_by == "web_0"


def test_requests_may_come_before_the_answers_to_those_before_them(
    vm: Vm, door: tuple[str, int]
) -> None:
    answered = raw(door, 3 * A_POLL)

    assert answered.count(b"HTTP/1.1 200") == 3
    assert vm.polls == 3


def test_a_poll_that_waits_is_answered_when_something_happens(
    vm: Vm, client: HTTPConnection
) -> None:
    client.request("GET", f"{DOCUMENT}&wait=60s&last-incarnation=1", headers=HEADERS)
    vm.wait_polled()

    event = vm.schedule("Freeze")

    shown = json.loads(client.getresponse().read())
    assert [each["EventId"] for each in shown["Events"]] == [event.id]


def test_a_reset_stays_a_reset(
    scheduled_events: ScheduledEventsService, vm: Vm, client: HTTPConnection
) -> None:
    scheduled_events.faults.add("reset")

    client.request("GET", DOCUMENT, headers=HEADERS)

    with pytest.raises(ConnectionResetError):
        client.getresponse()


def test_half_an_answer_stays_half_an_answer(
    scheduled_events: ScheduledEventsService, vm: Vm, door: tuple[str, int]
) -> None:
    scheduled_events.faults.add("truncated")

    answered = raw(door, A_POLL)

    head, _, body = answered.partition(b"\r\n\r\n")
    assert b"200" in head
    assert not body.endswith(b"}")


@pytest.mark.parametrize(
    "first",
    [
        b"GET http://127.0.0.1/metadata/versions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + 9000 * b"x" + b": 1\r\n\r\n",
    ],
)
def test_what_can_not_be_followed_is_the_servers_to_refuse_and_nothing_comes_after_it(
    vm: Vm, door: tuple[str, int], first: bytes
) -> None:
    """S7."""
    answered = raw(door, first + A_POLL)

    assert answered.startswith(b"HTTP/1.1 4")
    assert answered.count(b"HTTP/1.1") == 1


def test_a_server_that_is_not_there_is_a_reset(scheduled_events: ScheduledEventsService) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with (
        relayed(f"http://127.0.0.1:{port}", "/vm/web_0") as door,
        # Which may come before the connection is known to be there.
        pytest.raises(ConnectionResetError),
        socket.create_connection(door, timeout=30) as client,
    ):
        client.recv(1)


def test_without_a_prefix_bytes_are_passed_on_as_they_are(vm: Vm) -> None:
    with relayed(vm.endpoint, "") as door:
        answered = raw(door, f"GET /vm/web_0{DOCUMENT} HTTP/1.0\r\nMetadata: true\r\n\r\n".encode())

    assert b"DocumentIncarnation" in answered


def test_a_relay_that_ends_under_an_open_connection_says_nothing(
    scheduled_events: ScheduledEventsService, vm: Vm, caplog: pytest.LogCaptureFixture
) -> None:
    """A program's last connection may outlive it by a moment."""
    with relayed(scheduled_events.endpoint, f"/vm/{vm.name}") as address:
        client = HTTPConnection(*address, timeout=30)
        client.request("GET", DOCUMENT, headers=HEADERS)
        client.getresponse().read()
    client.close()

    assert caplog.records == []
