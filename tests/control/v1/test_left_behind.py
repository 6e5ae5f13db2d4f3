"""No request leaves objects behind that refer to each other: a writer hardly ever looks for them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from forewarned.control.v1.changes import Watcher
from forewarned.control.v1.history.missed_changes import MissedChanges
from forewarned.runtime.listeners.conversation import Conversation
from forewarned.service.listings import HistoryRow
from tests.actuators.served import served
from tests.control.control_api import ControlApi
from tests.garbage import left_behind, uncollected

KINDS = (
    *(Conversation, HistoryRow, MissedChanges, Request),
    *(RequestResponseCycle, Response, Watcher),
)
CHANGES = b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n"
EVENT = b'{"type": "Reboot", "resources": ["web"]}'


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    with uncollected():
        yield


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def let_go(before: list[str]) -> list[str]:
    """What is more than before, once the server has had its time to let go of it."""
    for _ in range(200):
        if (now := left_behind(*KINDS)) == before:
            return []
        await asyncio.sleep(0.01)
    return list((Counter(now) - Counter(before)).elements())


@pytest.mark.parametrize(
    ("request_", "until"),
    [
        pytest.param(CHANGES + b"\r\n", b"event: hello", id="changes"),
        pytest.param(CHANGES + b"Last-Event-ID: %s\r\n\r\n", b"activated", id="missed"),
        pytest.param(CHANGES.replace(b"/changes", b"/events") + b"\r\n", b"events", id="a listing"),
        pytest.param(CHANGES.replace(b"/changes", b"/nowhere") + b"\r\n", b"404", id="a refusal"),
        pytest.param(
            CHANGES.replace(b"GET /v1/changes", b"POST /v1/events")
            + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (len(EVENT), EVENT),
            b"event_id",
            id="a change",
        ),
    ],
)
async def test_a_request_that_is_over_is_gone_without_a_collection(
    control: ControlApi, request_: bytes, until: bytes
) -> None:
    beginning = await control.services.engine.history_position()
    await control.switch_on("web")
    if b"%s" in request_:
        request_ %= beginning.encode()
    async with served(control) as url:
        before = left_behind(*KINDS)
        for _ in range(3):
            async with connected(url) as (reader, writer):
                writer.write(request_)
                async with asyncio.timeout(30):
                    await reader.readuntil(until)

        assert await let_go(before) == []


async def test_what_a_watcher_had_missed_is_let_go_while_it_goes_on_watching(
    control: ControlApi,
) -> None:
    beginning = await control.services.engine.history_position()
    await control.switch_on("web")
    async with served(control) as url, connected(url) as (reader, writer):
        before = left_behind(HistoryRow)
        writer.write(CHANGES + b"Last-Event-ID: %s\r\n\r\n" % beginning.encode())
        async with asyncio.timeout(30):
            await reader.readuntil(b"event: activated")
            await control.schedule("Reboot", "web")
            await reader.readuntil(b"event: scheduled")

        assert left_behind(HistoryRow) == before
