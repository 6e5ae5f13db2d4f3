"""Who is ready, who is silent, and where agents leave word of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from forewarned.agent.readiness.directory import DirectoryReports
from forewarned.agent.readiness.kubernetes import LeaseReports
from forewarned.agent.readiness.ports import (
    Readiness,
    ReadinessError,
    ReadinessReport,
    RollCall,
    Standing,
)
from forewarned.clock import wall_clock
from forewarned.security.certificates import provide
from tests.agent.hooks.http_service import Reply, answering, of_its_own_authority
from tests.agent.journeys import EVENT
from tests.builders import MINUTE, SECOND

OTHER = "0000000B-0000-4000-8000-000000000000"
READY = ReadinessReport(standing=Standing.READY, beat=1)
PREPARING = ReadinessReport(standing=Standing.PREPARING, beat=1)
REFUSES = ReadinessReport(standing=Standing.REFUSES, beat=1)


def a_roll() -> RollCall:
    return RollCall(["web_0", "WEB_1"], patience=MINUTE, now=0.0 * SECOND)


def test_who_has_said_so_is_ready_and_stays_so_when_its_agent_dies() -> None:
    roll = a_roll()

    roll.hear({"Web_1": READY}, now=1.0 * SECOND)

    assert roll.ready() == {"web_1"}
    assert roll.silent(now=1000.0 * SECOND) == {"web_0"}


def test_who_was_never_heard_has_as_long_as_who_was_heard_just_now() -> None:
    roll = a_roll()

    assert roll.silent(now=60.0 * SECOND) == frozenset()
    assert roll.silent(now=60.1 * SECOND) == {"web_0", "web_1"}


@pytest.mark.parametrize("report", [PREPARING, REFUSES])
def test_a_beat_that_stands_still_is_silence_and_one_that_moves_is_not(
    report: ReadinessReport,
) -> None:
    roll = a_roll()
    roll.hear({"web_0": report, "web_1": report}, now=50.0 * SECOND)
    roll.hear(
        {"web_0": report, "web_1": ReadinessReport(standing=report.standing, beat=2)},
        now=100.0 * SECOND,
    )

    assert roll.silent(now=111.0 * SECOND) == {"web_0"}
    assert roll.ready() == frozenset()


def test_an_agent_that_started_anew_is_heard_though_it_counts_from_one_again() -> None:
    roll = a_roll()
    roll.hear({"web_0": ReadinessReport(standing=Standing.PREPARING, beat=7)}, now=0.0 * SECOND)
    roll.hear({"web_0": PREPARING}, now=59.0 * SECOND)

    assert roll.silent(now=100.0 * SECOND) == {"web_1"}


# --- where reports are kept ----------------------------------------------------------------------


class Leases:
    """As much of a Kubernetes API server as leases need: it keeps, patches, selects and deletes."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, dict[str, dict[str, str]]]] = {}
        self.tokens: set[str] = set()
        self.refuses = False

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            yield f"http://{host}:{port}"

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split()
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.tokens.add(headers["authorization"])
        status, answer = self._answer(method, target, json.loads(body) if body else {})
        content = json.dumps(answer).encode()
        writer.write(
            f"HTTP/1.1 {status} Said\r\nContent-Length: {len(content)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + content
        )
        await writer.drain()
        writer.close()

    def _answer(
        self, method: str, target: str, body: dict[str, dict[str, dict[str, str]]]
    ) -> tuple[int, object]:
        url = urlsplit(target)
        folder = "/apis/coordination.k8s.io/v1/namespaces/ours/leases"
        assert url.path.startswith(folder)
        name = url.path.removeprefix(folder).removeprefix("/")
        if self.refuses:
            return 403, {"message": "leases is forbidden"}
        if method == "GET":
            label, _, value = parse_qs(url.query)["labelSelector"][0].partition("=")
            items = [x for x in self.kept.values() if x["metadata"]["labels"][label] == value]
            return 200, {"items": items}
        if method == "POST":
            self.kept[str(body["metadata"]["name"])] = body
            return 201, body
        if name not in self.kept:
            return 404, {"message": "not found"}
        if method == "DELETE":
            return 200, self.kept.pop(name)
        self.kept[name] = body
        return 200, body


@asynccontextmanager
async def a_directory(folder: Path) -> AsyncIterator[Readiness]:
    yield DirectoryReports(folder)


@asynccontextmanager
async def a_cluster(folder: Path) -> AsyncIterator[Readiness]:
    (folder / "token").write_text("secret\n")
    leases = Leases()
    async with leases.serving() as url:
        yield LeaseReports(server=url, namespace="ours", credentials=folder)
    assert leases.tokens <= {"Bearer secret"}


@pytest.fixture(params=[a_directory, a_cluster])
async def readiness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Readiness]:
    made: AbstractAsyncContextManager[Readiness] = request.param(tmp_path)
    async with made as found:
        yield found


@pytest.mark.anyio
async def test_agents_read_each_others_reports_by_event(readiness: Readiness) -> None:
    assert await readiness.reports(EVENT) == {}

    await readiness.report(EVENT, "web_0", PREPARING)
    await readiness.report(EVENT, "web_0", READY)
    await readiness.report(EVENT.lower(), "db_0", REFUSES)
    await readiness.report(OTHER, "web_0", PREPARING)

    assert await readiness.reports(EVENT) == {"web_0": READY, "db_0": REFUSES}
    await readiness.forget(EVENT, "web_0")
    await readiness.forget(EVENT, "web_0")
    assert await readiness.reports(EVENT) == {"db_0": REFUSES}
    assert await readiness.reports(OTHER) == {"web_0": PREPARING}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["../../escaped", "..", "a/b", "ä%2f"])
async def test_no_name_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    """Ids and names come from outside."""
    shared = tmp_path / "in" / "shared"
    shared.mkdir(parents=True)
    readiness = DirectoryReports(shared)

    await readiness.report(name, name, READY)

    assert await readiness.reports(name) == {name: READY}
    assert {path.parents[1] for path in _files(tmp_path)} == {shared}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.anyio
async def test_what_cannot_be_read_is_no_report(tmp_path: Path) -> None:
    readiness = DirectoryReports(tmp_path)
    await readiness.report(EVENT, "web_0", READY)
    (file,) = _files(tmp_path)
    file.with_name("web_1.json").write_text('{"standing": "rea')

    assert await readiness.reports(EVENT) == {"web_0": READY}


@pytest.mark.anyio
async def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Where the shared file system is not mounted, nobody else would read what is written."""
    readiness = DirectoryReports(tmp_path / "not-mounted")

    with pytest.raises(ReadinessError):
        await readiness.report(EVENT, "web_0", READY)
    with pytest.raises(ReadinessError, match="not-mounted"):
        await readiness.reports(EVENT)


@pytest.mark.anyio
async def test_what_a_cluster_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    leases = Leases()
    leases.refuses = True
    async with leases.serving() as url:
        readiness = LeaseReports(server=url, namespace="ours", credentials=tmp_path)
        with pytest.raises(ReadinessError, match=r"403: .*leases is forbidden"):
            await readiness.report(EVENT, "web_0", READY)
    with pytest.raises(ReadinessError, match="can't reach http"):
        await readiness.reports(EVENT)


@pytest.mark.anyio
async def test_outside_of_a_cluster_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    readiness = LeaseReports(server="", namespace="ours", credentials=tmp_path)

    with pytest.raises(ReadinessError, match="not running in a cluster"):
        await readiness.reports(EVENT)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    with pytest.raises(ReadinessError, match=r"can't read .*/token: No such file"):
        await readiness.reports(EVENT)


async def test_no_token_is_sent_to_an_api_server_of_another_authority(tmp_path: Path) -> None:
    """S16."""
    served, ours = tmp_path / "served", tmp_path / "ours"
    for folder in (served, ours):
        folder.mkdir()
    known = provide(ours, names=["127.0.0.1"], now=wall_clock())
    (ours / "token").write_text("secret")
    (ours / "ca.crt").write_bytes(known.authority.read_bytes())
    with answering(lambda _: Reply(json={"items": []}), of_its_own_authority(served)) as service:
        leases = LeaseReports(server=service.url, namespace="ours", credentials=ours)
        with pytest.raises(ReadinessError, match="certificate verify failed"):
            await leases.reports(EVENT)

    assert service.asked == []
