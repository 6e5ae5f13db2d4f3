"""The readiness endpoint, which is ours: who may say what, and what is heard."""

import json
from typing import Any

import pytest

from forewarned.core.errors import UnknownResourceError
from forewarned.metadata.options import Options
from forewarned.metadata.server import MetadataServer
from forewarned.service.errors import StoreUnavailableError
from tests.builders import A, B, C
from tests.metadata.fakes import Answer, Client, FakeService, Site, get

PATH = "/metadata/forewarned/readiness"


@pytest.fixture
def service() -> FakeService:
    """vm1 and vm2 share scope1, which has event A; vm3 is in scope2, which has B."""
    service = FakeService()
    service.add("vm2", "127.0.0.2", "scope1")
    service.add("vm3", "127.0.0.3", "scope2")
    service.readiness.events = {A: "scope1", B: "scope2"}
    return service


def said(answer: Answer) -> Any:  # JSON, which tests look into
    return json.loads(answer.body)


def put(target: str, **headers: str) -> bytes:
    return get(target, "PUT", **headers)


async def test_a_vm_says_that_it_is_ready_and_all_of_its_scope_hear_it(site: Site) -> None:
    first = await site.request(put(f"{PATH}?event={A}"))
    second = await site.get(f"{PATH}?event={A}", address="127.0.0.2")

    assert (first.status, second.status) == (200, 200)
    assert second.headers["Content-Type"] == "application/json; charset=utf-8"
    assert said(first) == said(second)
    assert said(second) == {
        "event": A,
        "preparing": {},
        "ready": {"vm1": "2026-01-05T12:00:00.000000Z"},
        "refuses": {},
    }


async def test_a_vm_may_say_that_it_is_not_ready_and_why(site: Site) -> None:
    await site.request(put(f"{PATH}?event={A}&standing=preparing"))
    answer = await site.request(put(f"{PATH}?event={A}&standing=Refuses"), address="127.0.0.2")

    assert {name: list(vms) for name, vms in said(answer).items() if name != "event"} == {
        "preparing": ["vm1"],
        "ready": [],
        "refuses": ["vm2"],
    }


async def test_ids_have_any_letter_case_and_paths_too(site: Site) -> None:
    answer = await site.request(put(f"{PATH.upper()}/?EVENT={A.lower()}&extra=1"))

    assert (answer.status, said(answer)["event"]) == (200, A)


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_a_foreign_and_an_unknown_event_get_the_same_404(
    service: FakeService, site: Site, method: str
) -> None:
    """I12"""
    for event_id in (B, C):
        answer = await site.request(get(f"{PATH}?event={event_id}", method))

        assert answer.status == 404
        assert said(answer) == {"error": f"Not found. No event {event_id} is open in this scope."}
    assert service.readiness.kept == {}


@pytest.mark.parametrize(
    "query",
    ["", "?event=", "?event=reboot", f"?event={A}&event={A}", f"?event={A}&standing=done"],
)
async def test_a_query_that_makes_no_sense_is_400_and_changes_nothing(
    service: FakeService, site: Site, query: str
) -> None:
    answer = await site.request(put(f"{PATH}{query}"))

    assert answer.status == 400
    assert service.readiness.kept == {}


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_are_405_and_told_which_there_are(site: Site, method: str) -> None:
    answer = await site.request(get(f"{PATH}?event={A}", method))

    assert (answer.status, answer.headers["Allow"]) == (405, "GET, PUT")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Metadata": ""}, 400),
        ({"X-Forwarded-For": "10.0.0.4"}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 400),
    ],
)
async def test_the_guards_are_those_of_every_other_path(
    service: FakeService, site: Site, headers: dict[str, str], status: int
) -> None:
    answer = await site.request(put(f"{PATH}?event={A}", **headers))

    assert answer.status == status
    assert service.readiness.kept == {}


async def test_an_address_of_no_vm_is_nobody(service: FakeService, site: Site) -> None:
    answer = await site.request(put(f"{PATH}?event={A}"), address="127.0.0.9")

    assert answer.status == 403
    assert service.readiness.kept == {}


async def test_an_emulator_lets_loopback_speak_for_any_vm(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=None, emulator=True)) as site:
        await site.request(put(f"/vm/vm2{PATH}?event={A}"))
        answer = await site.get(f"/vm/vm1{PATH}?event={A}")

    assert list(said(answer)["ready"]) == ["vm2"]


async def test_beats_count_as_requests_like_any_other(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=5.0)) as site:
        client = await site.connect()
        answers = [await client.request(put(f"{PATH}?event={A}")) for _ in range(6)]
        neighbour = await site.get(f"{PATH}?event={A}", address="127.0.0.2")

    assert [answer.status for answer in answers] == [200] * 5 + [429]
    assert neighbour.status == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [(StoreUnavailableError("away"), 503), (UnknownResourceError("vm1"), 404)],
)
async def test_what_is_not_heard_is_said_to_be_so(
    service: FakeService, site: Site, error: Exception, status: int
) -> None:
    service.readiness.error = error

    assert (await site.request(put(f"{PATH}?event={A}"))).status == status


async def test_the_connection_goes_on_and_a_body_means_nothing(client: Client) -> None:
    answer = await client.request(put(f"{PATH}?event={A}", Content_Length="2") + b"{}")

    assert answer.status == 200
    assert (await client.get()).status == 200


async def test_a_listener_without_readiness_has_nothing_there(service: FakeService) -> None:
    server = MetadataServer(
        board=service.board,
        directory=service.directory,
        reader=service.reader,
        approver=service.approver,
        clock=service.clock,
        options=Options(port=0),
    )
    async with server:
        site = Site(server)
        answer = await site.request(put(f"{PATH}?event={A}"))
        site.close()

    assert answer.status == 404
