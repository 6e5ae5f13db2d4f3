"""Approving: every shape that real clients send, and every shape that is refused."""

import json
from typing import Any

import pytest

from forewarned.core.errors import NotOwnResourceError, UnknownScopeError
from forewarned.metadata.wire import BadBodyError, start_requests
from tests.builders import A, B, C, an_event
from tests.metadata.fakes import DATE, Client, FakeService, get

ONE = f'{{"StartRequests":[{{"EventId":"{A}"}}]}}'


@pytest.fixture
def service() -> FakeService:
    service = FakeService()
    service.publish(an_event(A), an_event(B))
    return service


async def test_success_is_200_without_a_body(service: FakeService, client: Client) -> None:
    answer = await client.post(ONE)

    assert answer.head == (
        b"HTTP/1.1 200 OK\r\n"
        b"Server: IMDS/forewarned\r\n"
        b"Date: " + DATE + b"\r\n"
        b"Content-Length: 0\r\n\r\n"
    )
    [(ids, caller, address)] = service.approver.approved
    assert (ids, caller.name, caller.scope_id, address) == ((A,), "vm1", "scope1", "127.0.0.1")


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        (ONE, (A,)),
        (ONE.lower().replace("startrequests", "StartRequests").replace("eventid", "EventId"), (A,)),
        (f'{{"DocumentIncarnation":"5","StartRequests":[{{"EventId":"{A}"}}]}}', (A,)),
        (f'{{"DocumentIncarnation":5,"StartRequests":[{{"EventId":"{A}"}}]}}', (A,)),
        (f'{{"StartRequests":[{{"EventId":"{A}","Extra":[[{{}}]]}}]}}', (A,)),
        (f'{{"StartRequests":[{{"EventId":"{A}"}},{{"EventId":"{B}"}}]}}', (A, B)),
        (f'{{"StartRequests":[{{"EventId":"{A}"}},{{"EventId":"{A}"}}]}}', (A,)),
        (f' {{\r\n"StartRequests" : [ {{ "EventId" : "{A}" }} ]\r\n}} ', (A,)),
    ],
)
async def test_bodies_that_clients_send_are_understood(
    service: FakeService, client: Client, body: str, ids: tuple[str, ...]
) -> None:
    answer = await client.post(body)

    assert (answer.status, answer.body) == (200, b"")
    assert [each for each, _, _ in service.approver.approved] == [ids]


@pytest.mark.parametrize(
    "content_type",
    ["", "application/json", "application/x-www-form-urlencoded", "text/plain; charset=x"],
)
async def test_the_body_is_json_whatever_its_content_type_says(
    service: FakeService, client: Client, content_type: str
) -> None:
    answer = await client.post(ONE, Content_Type=content_type)

    assert answer.status == 200


async def test_reading_and_approving_may_use_different_versions(
    service: FakeService, client: Client
) -> None:
    read = await client.get("/metadata/scheduledevents?api-version=2020-07-01")
    [first, *_] = json.loads(read.body)["Events"]

    approved = await client.post(
        json.dumps({"StartRequests": [{"EventId": first["EventId"]}]}),
        "/metadata/scheduledevents?api-version=2019-08-01",
    )

    assert approved.status == 200


async def test_if_none_match_means_nothing_to_an_approval(
    service: FakeService, client: Client
) -> None:
    answer = await client.post(ONE, If_None_Match='"2"')

    assert answer.status == 200
    assert len(service.approver.approved) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "truncated"),
        ("x", "malformed"),
        ("null", "Expected `object`"),
        ("[]", "Expected `object`"),
        ("{}", "missing required field `StartRequests`"),
        ('{"StartRequests":[]}', "$.StartRequests"),
        ('{"StartRequests":null}', "$.StartRequests"),
        (f'{{"StartRequests":{{"EventId":"{A}"}}}}', "$.StartRequests"),
        (f'{{"StartRequests":["{A}"]}}', "$.StartRequests[0]"),
        ('{"StartRequests":[{}]}', "missing required field `EventId`"),
        ('{"StartRequests":[{"EventId":5}]}', "$.StartRequests[0].EventId"),
        ('{"StartRequests":[{"EventId":null}]}', "$.StartRequests[0].EventId"),
        ('{"StartRequests":[{"EventId":"reboot"}]}', "'reboot' is not an event id"),
        (ONE + "}", "malformed"),
        (b'{"StartRequests":[{"EventId":"\xff"}]}', "not"),
        ('{"StartRequests":[{"EventId":"\\ud800"}]}', "not"),
        (f"StartRequests={A}", "malformed"),
    ],
)
async def test_a_body_that_is_not_understood_is_400_and_approves_nothing(
    service: FakeService, client: Client, body: str | bytes, message: str
) -> None:
    answer = await client.post(body)

    assert answer.status == 400
    assert message in json.loads(answer.body)["error"]
    assert service.approver.approved == []
    assert (await client.get()).status == 200


async def test_an_unknown_id_is_400_and_approves_nothing_of_the_request(
    service: FakeService, client: Client
) -> None:
    answer = await client.post(f'{{"StartRequests":[{{"EventId":"{A}"}},{{"EventId":"{C}"}}]}}')

    assert answer.status == 400
    assert answer.body == b'{"error":"event %s was not found"}' % C.encode()
    assert service.approver.approved == []


@pytest.mark.parametrize(
    ("error", "status"), [(NotOwnResourceError(A), 403), (UnknownScopeError("scope1"), 404)]
)
async def test_refusals_of_the_rules_have_a_status(
    service: FakeService, client: Client, error: Exception, status: int
) -> None:
    service.approver.error = error

    answer = await client.post(ONE)

    assert (answer.status, json.loads(answer.body)) == (status, {"error": str(error)})


def requests(count: int) -> bytes:
    ids = [f"{number:08X}-0000-4000-8000-000000000000" for number in range(count)]
    return json.dumps({"StartRequests": [{"EventId": each} for each in ids]}).encode()


def test_a_hundred_events_can_be_approved_together_and_no_more() -> None:
    assert len(start_requests(requests(100))) == 100
    with pytest.raises(BadBodyError, match="more than 100"):
        start_requests(requests(101))


def nested(depth: int) -> bytes:
    inner: Any = "]}[{"
    for _ in range(depth - 1):
        inner = [inner]
    return json.dumps({"Extra": inner, **json.loads(ONE)}).encode()


def test_a_body_is_sixteen_levels_deep_at_most() -> None:
    assert start_requests(nested(16)) == (A,)
    with pytest.raises(BadBodyError, match="more than 16 levels"):
        start_requests(nested(17))


@pytest.mark.parametrize("unit", [b"[", b'{"a":', b'\\"', b'"', b'"\\', b"\\"])
def test_a_body_that_never_closes_costs_no_more_than_its_length(unit: bytes) -> None:
    body = (b'"' + unit * 65536)[:65536]

    for bomb in (body, body[1:]):
        with pytest.raises(BadBodyError):
            start_requests(bomb)


async def test_a_body_may_come_in_chunks(service: FakeService, client: Client) -> None:
    body = ONE.encode()
    head = get(method="POST", Transfer_Encoding="chunked")
    halves = b"%x\r\n%s\r\n%x;ext=1\r\n%s\r\n" % (10, body[:10], len(body) - 10, body[10:])

    answer = await client.request(head + halves + b"0\r\nTrailer: x\r\n\r\n")

    assert answer.status == 200
    assert (await client.get()).status == 200


async def test_a_client_that_waits_to_be_asked_for_its_body_is(
    service: FakeService, client: Client
) -> None:
    head = get(method="POST", Content_Length=str(len(ONE)), Expect="100-continue")

    await client.send(head)
    interim = await client.reader.readuntil(b"\r\n\r\n")
    answer = await client.request(ONE.encode())

    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answer.status == 200
    assert (await client.get()).status == 200


async def test_a_client_that_waits_for_a_refusal_gets_it_without_sending_its_body(
    service: FakeService, client: Client
) -> None:
    head = get(method="POST", Content_Length=str(len(ONE)), Expect="100-continue", Metadata="")

    answer = await client.request(head)

    assert answer.status == 400
    assert answer.headers["Connection"] == "close"
    assert await client.rest() == b""


async def test_a_client_that_sends_its_body_with_the_expectation_needs_no_asking(
    service: FakeService, client: Client
) -> None:
    answer = await client.post(ONE, Expect="100-continue")

    assert answer.status == 200
