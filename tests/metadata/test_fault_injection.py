"""What VMs see of each fault, on the wire; and that nothing is left of it afterwards."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from forewarned.core.ids import ResourceName
from forewarned.metadata.options import Options
from forewarned.service.faults import Fault, FaultKind, FaultMethod
from tests.builders import A, an_event
from tests.metadata.fakes import EVENTS, Answer, Client, FakeService, Site, get, post, until

APPROVAL = f'{{"StartRequests":[{{"EventId":"{A}"}}]}}'
SOON = timedelta(milliseconds=1)
LONG = timedelta(minutes=10)

pytestmark = pytest.mark.anyio


def error(status: int, **more: object) -> Fault:
    return replace(Fault(kind=FaultKind.STATUS, status=status), **more)  # type: ignore[arg-type]  # a test names what it likes


async def known_poll(client: Client) -> Answer:
    """A poll that the connection repeats by heart."""
    for _ in range(3):
        answer = await client.get()
    return answer


async def test_an_error_is_answered_so_often_and_then_the_document(
    service: FakeService, client: Client
) -> None:
    healthy = await known_poll(client)
    service.faults.add(error(500, times=2))

    answers = [await client.get() for _ in range(4)]

    assert [answer.status for answer in answers] == [500, 500, 200, 200]
    assert answers[0].body == b'{"error":"Injected by fault 1: 500."}'
    assert answers[3] == healthy


@pytest.mark.parametrize("status", [400, 410, 429, 451, 499, 503, 599])
async def test_any_error_can_be_asked_for(
    service: FakeService, client: Client, status: int
) -> None:
    service.faults.add(error(status, retry_after=timedelta(seconds=7)))

    answer = await client.get()

    assert answer.status == status
    assert answer.headers["Retry-After"] == "7"


async def test_a_failed_approval_approves_nothing(service: FakeService, client: Client) -> None:
    service.publish(an_event())
    service.faults.add(error(500, times=1, method=FaultMethod.POST))

    assert (await client.get()).status == 200
    assert (await client.post(APPROVAL)).status == 500
    assert service.approver.approved == []
    assert (await client.post(APPROVAL)).status == 200
    assert len(service.approver.approved) == 1


async def test_an_empty_answer_has_no_body(service: FakeService, client: Client) -> None:
    service.faults.add(Fault(kind=FaultKind.EMPTY, times=1))

    answer = await client.get()

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Length"] == "0"
    assert (await client.get()).body


async def test_an_approval_whose_answer_is_spoiled_is_made(
    service: FakeService, client: Client, site: Site
) -> None:
    service.publish(an_event())
    service.faults.add(Fault(kind=FaultKind.EMPTY, times=1))
    service.faults.add(Fault(kind=FaultKind.TRUNCATED, times=1))

    assert (await client.post(APPROVAL)).body == b""
    await client.send(post(APPROVAL))
    half = await client.rest()

    assert half.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\n\r\n" not in half
    assert len(service.approver.approved) == 2


async def test_half_an_answer_ends_the_connection(
    service: FakeService, client: Client, site: Site
) -> None:
    whole = await client.get()
    service.faults.add(Fault(kind=FaultKind.TRUNCATED, times=1))

    await client.send(get())
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")

    assert f"Content-Length: {len(whole.body)}".encode() in head
    assert body == whole.body[: len(whole.body) // 2]
    assert await site.get() == whole


@pytest.mark.parametrize("raw", [get(), post(APPROVAL)], ids=["poll", "approval"])
async def test_a_reset_connection_gives_no_answer(
    service: FakeService, client: Client, site: Site, raw: bytes
) -> None:
    service.publish(an_event())
    await known_poll(client)
    service.faults.add(Fault(kind=FaultKind.RESET, times=1))

    await client.send(raw)

    with pytest.raises(ConnectionResetError):
        await client.rest()
    assert service.approver.approved == []
    assert (await site.get()).status == 200
    await until(lambda: site.server.connections == 1)


async def test_a_late_answer_is_the_one_that_is_due_then(
    service: FakeService, client: Client
) -> None:
    service.faults.add(Fault(kind=FaultKind.DELAY, delay=SOON))
    service.faults.add(error(500))

    answer = await client.get()

    assert answer.status == 200
    service.faults.remove("1")
    assert (await client.get()).status == 500


async def test_whoever_hangs_up_meanwhile_has_asked_for_nothing(
    service: FakeService, client: Client, site: Site
) -> None:
    service.publish(an_event())
    service.faults.add(Fault(kind=FaultKind.DELAY, delay=LONG))

    await client.send(post(APPROVAL))
    await until(lambda: service.faults.show()[0].used == 1)
    client.writer.transport.abort()
    await site.server.stop()

    assert service.approver.approved == []


async def test_a_server_that_stops_does_not_wait_for_late_answers(service: FakeService) -> None:
    service.faults.add(Fault(kind=FaultKind.DELAY, delay=LONG))
    async with asyncio.timeout(3), service.serving() as site:
        client = await site.connect()
        await client.send(get())
        await until(lambda: service.faults.show()[0].used == 1)

    with suppress(ConnectionResetError):
        assert await client.rest() == b""


async def test_a_stale_document_is_the_one_of_when_the_fault_was_added(
    service: FakeService, client: Client
) -> None:
    old = await known_poll(client)
    service.faults.add(Fault(kind=FaultKind.STALE, times=2))
    service.publish(an_event())

    assert (await client.get()).body == old.body
    unmodified = await client.get(If_None_Match=old.headers["ETag"])
    assert unmodified.status == 304
    assert (await client.get()).headers["ETag"] == '"2"'


async def test_a_malformed_document_comes_in_an_answer_that_is_whole(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event())
    healthy = await client.get()
    service.faults.add(Fault(kind=FaultKind.MALFORMED, times=1))

    broken = await client.get()

    assert broken.body == healthy.body[: len(healthy.body) // 2]
    assert broken.headers["Content-Length"] == str(len(broken.body))
    assert await client.get() == healthy


async def test_a_document_may_have_fields_and_events_that_there_are_not(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event())
    healthy = json.loads((await client.get()).body)
    service.faults.add(Fault(kind=FaultKind.UNKNOWN_FIELDS, times=1))
    service.faults.add(Fault(kind=FaultKind.UNKNOWN_EVENT, times=1))

    fields = json.loads((await client.get()).body)
    event = json.loads((await client.get()).body)

    assert fields.items() > {"DocumentIncarnation": healthy["DocumentIncarnation"]}.items()
    assert fields["Events"][0].items() > healthy["Events"][0].items()
    assert event["Events"][1:] == healthy["Events"]
    assert event["Events"][0]["EventType"] == "Relocate"


async def test_an_approval_meets_no_fault_of_documents(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event())
    service.faults.add(Fault(kind=FaultKind.MALFORMED, times=1))

    assert (await client.post(APPROVAL)).status == 200
    assert len(service.approver.approved) == 1


async def test_a_stale_document_is_not_waited_for(service: FakeService, client: Client) -> None:
    service.faults.add(Fault(kind=FaultKind.STALE, times=1))
    service.publish(an_event())

    assert (await client.get(f"{EVENTS}&wait=5m&last-incarnation=1")).headers["ETag"] == '"1"'
    assert (await client.get(f"{EVENTS}&wait=5m&last-incarnation=1")).headers["ETag"] == '"2"'


async def test_a_poll_that_waits_for_a_change_may_be_late_to_begin(
    service: FakeService, client: Client, site: Site
) -> None:
    service.faults.add(Fault(kind=FaultKind.DELAY, delay=SOON, times=1))

    await client.send(get(f"{EVENTS}&wait=5m&last-incarnation=1"))
    await until(lambda: bool(site.server.counts.waits))
    service.publish(an_event())

    assert (await client.receive()).headers["ETag"] == '"2"'


async def test_a_spoiled_answer_is_not_waited_for(service: FakeService, client: Client) -> None:
    service.faults.add(Fault(kind=FaultKind.EMPTY, times=1))

    assert (await client.get(f"{EVENTS}&wait=5m&last-incarnation=1")).body == b""


async def test_faults_of_one_vm_leave_the_others_alone(service: FakeService) -> None:
    service.add("vm2", "127.0.0.2", "scope2")
    service.faults.add(error(500, vm=ResourceName("vm2")))
    async with service.serving(Options(rate_limit=None)) as site:
        assert (await site.get()).status == 200
        assert (await site.get(address="127.0.0.2")).status == 500


async def test_requests_that_are_refused_use_no_fault_up(
    service: FakeService, client: Client
) -> None:
    service.faults.add(error(500, times=1))

    assert (await client.get(Metadata="")).status == 400
    assert (await client.get("/metadata/versions")).status == 200
    assert (await client.get("/metadata/instance?api-version=2021-12-13")).status == 200
    assert service.faults.show()[0].used == 0


async def test_answers_keep_the_order_of_their_requests(
    service: FakeService, client: Client
) -> None:
    service.faults.add(Fault(kind=FaultKind.DELAY, delay=SOON, times=1))
    service.faults.add(error(500, times=1))

    await client.send(get() + get() + get())
    answers = [(await client.receive()).status for _ in range(3)]

    assert answers == [200, 500, 200]


async def test_an_error_that_was_asked_for_is_counted_as_such(
    service: FakeService, client: Client, site: Site
) -> None:
    service.faults.add(error(500, times=1))

    await client.get()

    assert site.server.counts.take() == {"refused_fault": 1}


@pytest.mark.parametrize(
    "target", ["/metadata/versions", "/metadata/instance?api-version=2021-12-13"]
)
async def test_what_is_no_poll_and_no_approval_meets_no_fault(
    service: FakeService, client: Client, target: str
) -> None:
    """Neither when it is read for the first time, nor when it is known by sight."""
    service.faults.add(error(503))

    answers = [await client.get(target) for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 200]
    assert (await client.get()).status == 503
