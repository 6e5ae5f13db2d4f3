"""Both clients against a socket that does everything wrong: the contract, fault by fault."""

import itertools
import logging
import math
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from forewarned.client import (
    ChangeKind,
    EndpointNotFoundError,
    ProtocolError,
    RefusedError,
    ScheduledEvents,
    UnavailableError,
)
from forewarned.client._http import LONGEST_BODY, _meaning
from forewarned.client._steps import Loss
from tests.client.drivers import MakeDriver
from tests.client.flows import ID, a_body, an_event
from tests.client.scripted import DRIBBLE, RESET, SILENCE, an_answer, answering

GOOD = an_answer(a_body(2, an_event()))
OVER = an_answer(a_body(3))
FAULTS = {
    "reset": RESET,
    "closed": b"",
    "empty": an_answer(),
    "truncated": an_answer(a_body(9), "200 OK", "Connection: close")[:-4],
    "truncated json": an_answer(a_body(9)[:-4]),
    "html": an_answer(b"<html>sign in</html>"),
    "not http": b"220 smtp.example ESMTP\r\n\r\n",
    "redirect": an_answer(b"", "302 Found", "Location: http://127.0.0.1:1/"),
    "404": an_answer(b"", "404 Not Found"),
    "410": an_answer(b"", "410 Gone"),
    "429": an_answer(b"", "429 Too Many Requests", "Retry-After: 0"),
    "500": an_answer(b"{}", "500 Oops"),
    "503": an_answer(b"", "503 Busy"),
    "giant": an_answer(b" " * (LONGEST_BODY + 1)),
    "packed": an_answer(b"\x1f\x8b\x08", "200 OK", "Content-Encoding: gzip"),
}


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREWARNED_ENDPOINT", raising=False)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_watch_survives_every_fault_and_tells_each_change_once(
    client: MakeDriver, fault: str
) -> None:
    bad = FAULTS[fault]
    # A connection that is closed without a word is an answer with `Connection: close` cut short.
    bad = bad or b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n"

    with answering(GOOD, bad, GOOD, OVER) as service, client(service.address) as events:
        found = list(itertools.islice(events.watch(poll=0.01), 2))

    assert [change.kind for change in found] == [ChangeKind.APPEARED, ChangeKind.GONE]


@pytest.mark.parametrize("fault", ["html", "giant"])
def test_what_does_not_speak_scheduled_events_is_told_as_that(
    client: MakeDriver, fault: str
) -> None:
    with (
        answering(FAULTS[fault]) as service,
        client(service.address) as events,
        pytest.raises(ProtocolError),
    ):
        events.document()


@pytest.mark.parametrize("script", [SILENCE, DRIBBLE])
def test_a_service_that_never_finishes_is_unavailable_when_the_time_is_up(
    client: MakeDriver, script: bytes
) -> None:
    with (
        answering(script) as service,
        client(service.address, timeout=0.1, first_timeout=0.1) as events,
        pytest.raises(UnavailableError, match="in time"),
    ):
        events.document()


def test_nobody_at_the_address_is_unavailable(client: MakeDriver) -> None:
    with answering(GOOD) as service:
        address = service.address
    with client(address) as events, pytest.raises(UnavailableError, match="can't be reached"):
        events.document()


def test_an_approval_is_sent_again_when_its_answer_is_lost(client: MakeDriver) -> None:
    with answering(RESET, an_answer()) as service, client(service.address) as events:
        events.approve(ID)

        sent = [service.requests.get(timeout=9) for _ in range(2)]
    assert {request.rpartition(b"\r\n")[2] for request in sent} == {
        b'{"StartRequests":[{"EventId":"%s"}]}' % ID.encode()
    }


def test_a_refusal_has_the_services_words(client: MakeDriver) -> None:
    refusal = an_answer(b'{"error": "no event A"}', "400 Bad Request")

    with (
        answering(refusal) as service,
        client(service.address) as events,
        pytest.raises(RefusedError, match="no event A"),
    ):
        events.approve("A")


def test_requests_say_who_asks_and_go_straight_to_the_service(
    client: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S16: whatever the environment says of proxies."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with answering(GOOD) as service, client(f"http://{service.address}/vm/web_0/") as events:
        [event] = events.events()

        request = service.requests.get(timeout=9).decode().lower()
    assert event.event_id == ID
    assert request.startswith("get /vm/web_0/metadata/scheduledevents?api-version=2020-07-01 http")
    assert "\r\nmetadata: true\r\n" in request
    assert "\r\nuser-agent: forewarned/" in request
    assert "x-forwarded-for" not in request


def test_the_vm_says_who_it_is(client: MakeDriver) -> None:
    about = an_answer(b'{"compute": {"name": "web_0", "vmScaleSetName": "web"}}')

    with answering(about) as service, client(service.address) as events:
        assert events.me().scale_set == "web"
        assert events.me() is events.me()
        assert service.requests.qsize() == 1


def test_a_watch_ends_when_its_time_is_up(client: MakeDriver) -> None:
    with answering(GOOD) as service, client(service.address, timeout=timedelta(5)) as events:
        found = list(events.watch(poll=timedelta(milliseconds=10), timeout=1.0))

    assert [change.kind for change in found] == [ChangeKind.APPEARED]


def test_patience_ends(client: MakeDriver) -> None:
    with (
        answering(RESET) as service,
        client(service.address) as events,
        pytest.raises(UnavailableError, match="scheduled events could not be read for"),
    ):
        list(events.watch(patience=0.0))


def test_trouble_is_logged_once(client: MakeDriver, caplog: pytest.LogCaptureFixture) -> None:
    bad = FAULTS["503"]
    with (
        caplog.at_level(logging.WARNING, "forewarned.client"),
        answering(bad, bad, GOOD) as service,
        client(service.address) as events,
    ):
        next(iter(events.watch(poll=0.01)))

    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "scheduled events can't be read, trying again"
    ]


@pytest.mark.parametrize(
    "endpoint", ["", "ftp://x", "http://", "http://x/?q", "http://u@x", "a b", "x:99999", "x:y"]
)
def test_what_is_no_endpoint_is_a_mistake(client: MakeDriver, endpoint: str) -> None:
    with pytest.raises(ValueError, match="is not an endpoint"), client(endpoint):
        pass


def test_the_environment_names_the_endpoint(
    client: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(GOOD) as service, client() as events:
        monkeypatch.setenv("FOREWARNED_ENDPOINT", f"http://{service.address}/vm/a")

        assert events.document().incarnation == 2
        assert service.requests.get(timeout=9).startswith(b"GET /vm/a/metadata/")


def test_a_wrong_endpoint_in_the_environment_is_told(
    client: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREWARNED_ENDPOINT", "gopher://x")

    with client() as events, pytest.raises(EndpointNotFoundError, match="FOREWARNED_ENDPOINT"):
        events.document()


def test_a_client_says_how_its_service_is_doing_without_asking_it() -> None:
    with answering(GOOD, FAULTS["503"]) as service, ScheduledEvents(service.address) as events:
        before = events.contact()
        watching = events.watch(poll=0.01, timeout=0.3)
        next(watching)
        while_well = events.contact()
        assert list(watching) == []
        after = events.contact()

    assert (before.at, before.age, before.incarnation, before.trouble) == (None, None, None, None)
    assert (while_well.endpoint, while_well.incarnation) == (f"http://{service.address}", 2)
    assert while_well.age is not None
    assert while_well.trouble is None
    assert isinstance(after.trouble, UnavailableError)


@pytest.mark.parametrize("wrong", [5, [ID], None])
def test_what_is_neither_an_event_nor_an_id_is_not_approved(client: MakeDriver, wrong: Any) -> None:
    with answering(GOOD) as service, client(service.address) as events:
        with pytest.raises(TypeError, match="neither an event nor an id"):
            events.approve(wrong)

        assert service.requests.empty()


@pytest.mark.parametrize("span", [0.0, -1.0, math.nan])
def test_no_time_at_all_is_a_mistake(client: MakeDriver, span: float) -> None:
    with pytest.raises(ValueError, match="above zero"), client("x", timeout=span):
        pass
    with client("x") as events, pytest.raises(ValueError, match="above zero"):
        next(events.watch(poll=span))


def _kinds_of(error: type[Exception]) -> list[type[Exception]]:
    return [error, *itertools.chain.from_iterable(map(_kinds_of, error.__subclasses__()))]


def test_every_failure_of_the_library_below_has_a_meaning() -> None:
    meanings = {kind: _meaning(kind("x"))[0] for kind in _kinds_of(httpx2.TransportError)}

    unreached = {kind for kind, loss in meanings.items() if loss is Loss.UNREACHED}
    late = {kind for kind, loss in meanings.items() if loss is Loss.TIMED_OUT}
    assert unreached == {httpx2.ConnectError, httpx2.ConnectTimeout}
    assert late == {
        httpx2.TimeoutException,
        httpx2.ReadTimeout,
        httpx2.WriteTimeout,
        httpx2.PoolTimeout,
    }


def test_a_service_that_does_not_say_which_vm_this_is_is_named_with_the_way_out(
    client: MakeDriver,
) -> None:
    with (
        answering(FAULTS["404"]) as service,
        client(service.address) as events,
        pytest.raises(RefusedError) as refused,
    ):
        events.me()

    asked = f"http://{service.address}/metadata/instance?api-version=2021-12-13"
    assert asked in str(refused.value)
    assert "'resource'" in str(refused.value)


def test_a_watch_of_this_vm_alone_tells_the_way_out_too(client: MakeDriver) -> None:
    with (
        answering(FAULTS["404"]) as service,
        client(service.address) as events,
        pytest.raises(UnavailableError, match=r"/metadata/instance.* 'resource'"),
    ):
        next(iter(events.watch(only_mine=True, patience=0)))


def test_a_watch_that_is_told_the_name_needs_no_instance_endpoint(client: MakeDriver) -> None:
    with answering(GOOD) as service, client(service.address, resource="WEB_0") as events:
        first = next(iter(events.watch(only_mine=True)))

    assert first.kind is ChangeKind.APPEARED


def test_a_refusal_says_what_was_asked(client: MakeDriver) -> None:
    with (
        answering(FAULTS["404"]) as service,
        client(service.address) as events,
        pytest.raises(RefusedError) as refused,
    ):
        events.document()

    asked = f"http://{service.address}/metadata/scheduledevents?api-version=2020-07-01"
    assert str(refused.value) == f"{asked} answered 404"
