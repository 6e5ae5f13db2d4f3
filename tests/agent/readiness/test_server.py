"""What the agent makes of a server that is away, is another one, or talks nonsense."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from forewarned.agent.readiness.ports import ReadinessError, ReadinessReport, Standing
from forewarned.agent.readiness.server import ServerReports
from tests.agent.journeys import EVENT, ME

PATH = "/metadata/forewarned/readiness"
READY = ReadinessReport(standing=Standing.READY, beat=1)
GOOD = (
    '{"event": "A", "preparing": {"db_0": "2026-01-05T12:00:00Z"},'
    ' "ready": {"web_0": "2026-01-05T12:00:00.000001Z"}, "refuses": {}, "later": 1}'
)

pytestmark = pytest.mark.anyio


class Answering:
    """Whatever it is asked, it says the same, and notes what that was."""

    def __init__(self, status: int, body: str, *, headers: str = "") -> None:
        self.asked: list[str] = []
        self.heads: list[str] = []
        self._answer = (
            f"HTTP/1.1 {status} Said\r\n{headers}Content-Length: {len(body)}\r\n"
            f"Connection: close\r\n\r\n{body}"
        ).encode()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ServerReports]:
        server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            url = f"http://{host}:{port}/vm/web_0"
            yield ServerReports(lambda: url)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head.lower())
        self.asked.append(head.partition(" HTTP/")[0])
        writer.write(self._answer)
        await writer.drain()
        writer.close()


async def test_it_asks_as_a_vm_does_and_counts_beats_by_their_instants() -> None:
    server = Answering(200, GOOD)

    async with server.serving() as readiness:
        await readiness.report(EVENT, ME, READY)
        reports = await readiness.reports(EVENT)
        await readiness.forget(EVENT, ME)

    assert server.asked == [
        f"PUT /vm/web_0{PATH}?event={EVENT}&standing=ready",
        f"GET /vm/web_0{PATH}?event={EVENT}",
    ]
    assert all("\r\nmetadata: true\r\n" in head for head in server.heads)
    assert reports["db_0"].standing is Standing.PREPARING
    assert reports["web_0"] == ReadinessReport(
        standing=Standing.READY, beat=reports["db_0"].beat + 1
    )


async def test_an_id_is_an_id_and_never_more_of_a_query() -> None:
    server = Answering(200, GOOD)

    async with server.serving() as readiness:
        await readiness.report(
            "a&standing=ready #", ME, ReadinessReport(standing=Standing.REFUSES, beat=1)
        )

    assert server.asked == [
        f"PUT /vm/web_0{PATH}?event=a%26standing%3Dready%20%23&standing=refuses"
    ]


@pytest.mark.parametrize(
    "body",
    ["", "{}", "[]", GOOD.replace("01Z", "01"), GOOD.replace("2026-01", "soon"), GOOD[:-2]],
)
async def test_an_answer_that_is_no_readiness_makes_nobody_ready(body: str) -> None:
    async with Answering(200, body).serving() as readiness:
        with pytest.raises(ReadinessError, match="is not a readiness report"):
            await readiness.reports(EVENT)


@pytest.mark.parametrize("status", [302, 400, 404, 429, 503])
async def test_a_refusal_is_told_in_the_servers_words(status: int) -> None:
    """A redirect is one too: what answers elsewhere is not the VM's own service."""
    elsewhere = f"Location: http://127.0.0.1:1{PATH}\r\n"

    async with Answering(status, "no such thing", headers=elsewhere).serving() as readiness:
        with pytest.raises(ReadinessError, match=f"responded with {status}: no such thing"):
            await readiness.report(EVENT, ME, READY)
        with pytest.raises(ReadinessError, match=f"responded with {status}: no such thing"):
            await readiness.reports(EVENT)


async def test_a_server_that_is_away_or_not_found_yet_is_told() -> None:
    with pytest.raises(ReadinessError, match=r"can't reach http://127\.0\.0\.1:1"):
        await ServerReports(lambda: "http://127.0.0.1:1").reports(EVENT)
    with pytest.raises(ReadinessError, match="not been found yet"):
        await ServerReports(lambda: None).report(EVENT, ME, READY)


async def test_an_answer_longer_than_any_report_is_not_read_to_its_end() -> None:
    async with Answering(200, " " * 1024 * 1025).serving() as readiness:
        with pytest.raises(ReadinessError, match="sent more than 1048576 bytes"):
            await readiness.reports(EVENT)


async def test_a_service_that_keeps_no_readiness_is_found_out_without_saying_anything() -> None:
    azure = Answering(404, '{"error": "Not found"}')
    async with azure.serving() as readiness:
        with pytest.raises(ReadinessError, match="only Forewarned has one, Azure does not"):
            await readiness.check()
    assert azure.asked == [f"OPTIONS /vm/web_0{PATH}"]

    async with Answering(405, "").serving() as readiness:
        await readiness.check()
