"""Requests known by sight."""

import pytest

from forewarned.metadata.http.request_cache import RequestCache
from forewarned.metadata.http.responses import Persistence
from forewarned.metadata.routes import ReadVersions, RoutedRequest
from tests.builders import an_event
from tests.metadata.fakes import Client, FakeService, get

REQUEST = RoutedRequest(operation=ReadVersions(), persistence=Persistence.KEEP_ALIVE)


def test_who_always_sends_something_new_fills_no_memory() -> None:
    request_cache = RequestCache()

    for number in range(10_000):
        request_cache.learn(b"%d" % number, REQUEST)

    known = sum(request_cache.find(b"%d" % number) is not None for number in range(10_000))
    assert 0 < known <= 4096
    assert request_cache.find(b"9999") is REQUEST


def test_long_requests_are_not_remembered() -> None:
    request_cache = RequestCache()

    request_cache.learn(b"x" * 2049, REQUEST)

    assert request_cache.find(b"x" * 2049) is None


async def test_a_request_known_by_sight_gets_what_is_true_now(
    service: FakeService, client: Client
) -> None:
    answers = []
    for incarnation in range(1, 5):
        service.publish(an_event(), incarnation=incarnation)
        answers.append(await client.request(get(If_None_Match='"3"')))

    assert [answer.status for answer in answers] == [200, 200, 304, 200]
    assert [answer.headers["ETag"] for answer in answers] == ['"1"', '"2"', '"3"', '"4"']


@pytest.mark.parametrize("length", [478, 479, 480, 958, 2000, 4095, 4096, 4097])
async def test_a_poll_of_any_length_is_answered_once(client: Client, length: int) -> None:
    """As many bytes as are read at once, one fewer, one more: alone, and with one behind it."""
    poll = get(X_Filler="x" * (length - len(get(X_Filler="x")) + 1))
    assert len(poll) == length

    statuses = [(await client.request(poll)).status for _ in range(3)]
    await client.send(poll + poll)
    statuses += [(await client.receive()).status for _ in range(2)]

    assert statuses == [200] * 5
    assert (await client.get("/metadata/versions")).status == 200


async def test_a_defect_on_the_way_to_the_board_is_500(
    service: FakeService, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    del service.reader.seen_scopes

    failed = await client.get()
    service.reader.seen_scopes = []

    assert failed.status == 500
    assert "a request failed" in caplog.text
    assert (await client.get()).status == 200
