"""No connection leaves objects behind that refer to each other: a poller hardly ever looks for them."""

from collections.abc import Iterator

import pytest

from forewarned.metadata.http.connection import Connection
from forewarned.metadata.http.conversation import Conversation
from forewarned.metadata.http.requests import RequestParser
from tests.builders import A, an_event
from tests.garbage import left_behind, uncollected
from tests.metadata.fakes import EVENTS, FakeService, get, post, turns, until

APPROVAL = f'{{"StartRequests": [{{"EventId": "{A}"}}]}}'
KINDS = (Connection, Conversation, RequestParser)


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    with uncollected():
        yield


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(get(), id="a poll"),
        pytest.param(get(Connection="close"), id="a poll that closes"),
        pytest.param(post(APPROVAL), id="an approval"),
        pytest.param(post(APPROVAL, Connection="close"), id="an approval that closes"),
        pytest.param(get("/nowhere"), id="a refusal"),
        pytest.param(b"no HTTP at all\r\n\r\n", id="no HTTP"),
        pytest.param(get()[:-10], id="half a request"),
        pytest.param(get(f"{EVENTS}&wait=60s&last-incarnation=2"), id="a long poll"),
    ],
)
async def test_a_connection_that_is_over_is_gone_without_a_collection(raw: bytes) -> None:
    service = FakeService()
    service.publish(an_event(A))
    async with service.serving() as site:
        for _ in range(3):
            client = await site.connect()
            await client.send(raw)
            await turns()
            client.writer.close()
            await until(lambda: site.server.connections == 0)
        await turns()

        assert left_behind(*KINDS) == []
