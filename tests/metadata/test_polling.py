"""Reading: conditional requests, activation, and what is answered when there is no document."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarned.core.ids import ScopeId
from forewarned.metadata.options import Options
from forewarned.service.errors import StoreUnavailableError
from tests.builders import SECOND, A, a_scope, an_event
from tests.metadata.fakes import DATE, Client, FakeService, Site, get, post, until

APPROVAL = f'{{"StartRequests":[{{"EventId":"{A}"}}]}}'


@pytest.mark.parametrize(
    "tags",
    ['"7"', "7", 'W/"7"', "W/7", '"5", "7"', "5,7", "*", '"5",W/"7" , "9"'],
)
async def test_a_known_incarnation_is_answered_304(
    service: FakeService, client: Client, tags: str
) -> None:
    service.publish(an_event(), incarnation=7)

    await client.send(get(If_None_Match=tags))
    head = await client.reader.readuntil(b"\r\n\r\n")

    assert head == (
        b"HTTP/1.1 304 Not Modified\r\n"
        b"Server: IMDS/forewarned\r\n"
        b"Date: " + DATE + b"\r\n"
        b'ETag: "7"\r\nForewarned-Wait: 5m\r\n\r\n'
    )
    assert (await client.get()).status == 200


@pytest.mark.parametrize("tags", ["0", '"6"', "77", '"7x"', ""])
async def test_another_incarnation_is_answered_with_the_document(
    service: FakeService, client: Client, tags: str
) -> None:
    service.publish(an_event(), incarnation=7)

    answer = await client.get(If_None_Match=tags)

    assert answer.status == 200
    assert answer.headers["ETag"] == '"7"'


async def test_a_second_in_which_an_active_scope_is_polled_is_noted_and_nothing_is_stored(
    service: FakeService, client: Client
) -> None:
    await client.get()
    await client.get()
    await client.get(If_None_Match='"1"')
    at_first = list(service.reader.seen_scopes)
    await service.clock.step(SECOND)
    await client.get()

    assert at_first == ["scope1"]
    assert service.reader.seen_scopes == ["scope1", "scope1"]
    assert set(service.reader.readers) == {"vm1"}
    assert service.reader.activated == []


async def test_the_first_read_activates_before_it_is_answered(
    service: FakeService, client: Client
) -> None:
    service.show(a_scope(active=False))

    answer = await client.get()

    [(caller, address)] = service.reader.activated
    assert (caller.name, caller.scope_id, address) == ("vm1", "scope1", "127.0.0.1")
    assert service.board.page(ScopeId("scope1")).is_active  # type: ignore[union-attr]  # just shown
    assert answer.status == 200
    assert answer.body == b'{"DocumentIncarnation":1,"Events":[]}'


async def test_an_approval_activates_nothing(service: FakeService, client: Client) -> None:
    service.publish(an_event())
    service.show(replace(service.scopes["scope1"], active=False))

    answer = await client.post(APPROVAL)

    assert answer.status == 200
    assert service.reader.activated == []
    assert service.reader.seen_scopes == []


async def test_the_first_read_can_be_made_to_wait_on_the_servers_clock(
    service: FakeService,
) -> None:
    service.show(a_scope(active=False))
    options = Options(rate_limit=None, first_call_delay=timedelta(seconds=120))

    async with service.serving(options) as site, service.clock:
        first, second = await site.connect(), await site.connect()
        waiting = asyncio.create_task(first.get())
        await until(lambda: bool(service.reader.activated))
        at_once = await second.get()
        await service.clock.step(timedelta(seconds=119))

        assert at_once.status == 200
        assert not waiting.done()
        await service.clock.step(timedelta(seconds=1))
        assert (await waiting).status == 200


async def test_a_server_that_stops_does_not_sit_the_first_read_out(service: FakeService) -> None:
    service.show(a_scope(active=False))
    options = Options(rate_limit=None, first_call_delay=timedelta(seconds=120))

    async with service.serving(options) as site:
        client = await site.connect()
        await client.send(get())
        await until(lambda: bool(service.reader.activated))
        await site.server.stop()

        assert await client.rest() == b""


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), timedelta(seconds=121)])
def test_a_first_call_delay_is_two_minutes_at_most(delay: timedelta) -> None:
    with pytest.raises(ValueError, match="not between 0 s and 120 s"):
        Options(first_call_delay=delay)


async def test_no_document_is_503_and_never_an_empty_200(
    service: FakeService, client: Client
) -> None:
    service.directory.bind("vm1", "127.0.0.1", "unheard-of")

    answer = await client.get()

    assert answer.status == 503
    assert answer.headers["Retry-After"] == "1"
    assert answer.body == (b'{"error":"Service unavailable. Try again."}')


async def test_a_first_read_that_cannot_be_stored_is_503(
    service: FakeService, client: Client
) -> None:
    service.show(a_scope(active=False))
    service.reader.error = StoreUnavailableError()

    answer = await client.get()

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


async def test_an_active_scope_is_served_while_the_store_is_away(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event())
    service.reader.error = service.approver.error = StoreUnavailableError()

    read = await client.get()
    approved = await client.post(APPROVAL)

    assert read.status == 200
    assert (approved.status, approved.headers["Retry-After"]) == (503, "1")


async def test_a_defect_is_answered_500_and_the_connection_lives(
    service: FakeService, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    service.show(a_scope(active=False))
    service.reader.error = RuntimeError("a defect")

    failed = await client.get()
    service.reader.error = None

    assert (failed.status, failed.body) == (500, b'{"error":"Internal error. Try again."}')
    assert "a request failed" in caplog.text
    assert (await client.get()).status == 200


async def test_a_poll_and_an_approval_may_use_one_connection(
    service: FakeService, site: Site
) -> None:
    service.publish(an_event())
    client = await site.connect()

    await client.send(get() + post(APPROVAL) + get())
    answers = [await client.receive() for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 200]
    assert [len(answer.body) > 0 for answer in answers] == [True, False, True]
