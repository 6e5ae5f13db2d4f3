"""A server that plays a recording back: what VMs read, and what becomes of their approvals."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from forewarned.recordings.form import (
    Answered,
    Began,
    Entry,
    Stopped,
    Unanswered,
    encode,
)
from forewarned.runtime import single_process
from forewarned.runtime.listeners.sockets import StartError
from forewarned.runtime.settings import load
from forewarned.service.listings import HistoryFilter

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ID = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
EMPTY = '{"DocumentIncarnation":7,"Events":[]}'
SCHEDULED = (
    '{"DocumentIncarnation": 9, "Mood":"good", "Events":[{"EventId":"ID","EventStatus":"Scheduled",'
    '"EventType":"Blackout","Resources":["web_0","web_1"],"NotBefore":"Thu, 01 Jan 2026 12:16:00'
    ' GMT"}]}'
).replace("ID", ID, 1)
DOCUMENT = "/metadata/scheduledevents?api-version=2020-07-01"
HEADERS = {"content-type": "application/json", "etag": '"nine"', "date": "never", "server": "IMDS"}


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A server that starts takes the whole process's log over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


class Vm:
    """The handler of the recorded VM, and the operator who moves the clock."""

    def __init__(self, server: single_process.Running, client: httpx2.AsyncClient) -> None:
        self.server = server
        self.client = client

    async def read(self, **headers: str) -> httpx2.Response:
        return await self.client.get(DOCUMENT, headers=headers)

    async def approve(self, *event_ids: str) -> int:
        body = json.dumps({"StartRequests": [{"EventId": one} for one in event_ids]})
        return (await self.client.post(DOCUMENT, content=body)).status_code

    async def step(self, minutes: float) -> None:
        await self.server.application.use_cases.clock_control.step(timedelta(minutes=minutes))


@asynccontextmanager
async def replaying(folder: Path, *entries: Entry) -> AsyncIterator[Vm]:
    path = folder / "events.jsonl"
    began = Began(at=NOON, recording=1, vm="web_0")
    path.write_bytes(b"".join(encode(entry) for entry in (began, *entries)))
    anywhere = "127.0.0.1:0"
    flags = {"metadata": anywhere, "control": anywhere, "arm": "off", "clock": "paused"}
    resolved = load(flags=flags | {"data": folder / "state", "replay": path}, environ={})
    async with (
        single_process.running(resolved) as server,
        httpx2.AsyncClient(
            base_url=server.addresses.metadata_url, headers={"Metadata": "true"}, trust_env=False
        ) as client,
    ):
        yield Vm(server, client)


async def test_vms_read_what_was_recorded_when_it_was_recorded(tmp_path: Path) -> None:
    """Byte for byte, with the incarnations it had, and NotBefore as far ahead as it was."""
    entries = (
        Answered(at=at(0), status=200, body=EMPTY),
        Answered(at=at(1), status=200, body=SCHEDULED, headers=HEADERS),
        Stopped(at=at(2)),
    )
    async with replaying(tmp_path, *entries) as vm:
        first = await vm.read()
        await vm.step(0.9)
        still = await vm.read()
        began = vm.server.application.clock.now() - timedelta(minutes=0.9)
        await vm.step(0.1)
        second = await vm.read()
        unchanged = await vm.read(**{"If-None-Match": '"nine"'})
        await vm.step(10_000)
        last = await vm.read()
        name = (await vm.client.get("/metadata/instance?api-version=2021-12-13")).json()

    assert first.text == still.text == EMPTY
    assert "etag" not in first.headers
    assert second.headers["etag"] == '"nine"'
    assert second.headers["server"] == "IMDS/forewarned"
    assert unchanged.status_code == 304
    assert second.text == last.text
    due = second.json()["Events"][0]["NotBefore"]
    assert second.text == SCHEDULED.replace("Thu, 01 Jan 2026 12:16:00 GMT", due)
    left = datetime.strptime(due, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC) - began
    assert timedelta(0) <= left - timedelta(minutes=16) <= timedelta(seconds=1)
    assert name["compute"]["name"] == "web_0"


async def test_failures_are_played_back_too(tmp_path: Path) -> None:
    busy = {"retry-after": "3", "content-type": "text/plain"}
    entries = (
        Answered(at=at(0), status=200, body=EMPTY),
        Answered(at=at(1), status=503, body="busy", headers=busy),
        Unanswered(at=at(2), loss="broken"),
        Answered(at=at(3), status=200, body=EMPTY[:20]),
        Answered(at=at(4), status=200, base64=b"\xff\x00"),
        Answered(at=at(5), status=200, body=EMPTY),
    )
    async with replaying(tmp_path, *entries) as vm:
        await vm.step(1)
        failed = await vm.read(**{"If-None-Match": "*"})
        await vm.step(1)
        with pytest.raises(httpx2.HTTPError):
            await vm.read()
        await vm.step(1)
        cut = await vm.read()
        await vm.step(1)
        raw = await vm.read()
        await vm.step(1)
        good = await vm.read()
        faults = vm.server.application.use_cases.faults.show()

    assert (failed.status_code, failed.text, failed.headers["retry-after"]) == (503, "busy", "3")
    assert cut.text == EMPTY[:20]
    assert raw.content == b"\xff\x00"
    assert good.text == EMPTY
    assert faults == ()


async def test_a_request_that_had_no_answer_in_time_gets_none(tmp_path: Path) -> None:
    entries = (Unanswered(at=at(0), loss="timed_out"), Answered(at=at(1), status=200, body=EMPTY))
    async with replaying(tmp_path, *entries) as vm:
        waiting = asyncio.create_task(vm.read())
        # The other request is answered meanwhile: approvals were not what got lost.
        refused = await vm.approve(ID)
        is_waiting = not waiting.done()
        waiting.cancel()
        await vm.step(1)
        later = await vm.read()

    assert refused == 400
    assert is_waiting
    assert later.text == EMPTY


async def test_an_approval_is_answered_as_azure_does_and_noted_and_changes_nothing(
    tmp_path: Path,
) -> None:
    entries = (
        Answered(at=at(0), status=200, body=SCHEDULED),
        Answered(at=at(5), status=200, body=EMPTY),
    )
    async with replaying(tmp_path, *entries) as vm:
        before = await vm.read()
        statuses = [await vm.approve(ID.lower()), await vm.approve(ID)]
        unknown = await vm.approve(ID, ID.replace("C", "D"))
        after = await vm.read()
        await vm.step(5)
        gone = await vm.approve(ID)
        history = await vm.server.application.use_cases.engine.ask(
            lambda snapshot: snapshot.history(HistoryFilter())
        )

    assert statuses == [200, 200]
    assert (unknown, gone) == (400, 400)
    assert after.text == before.text
    approvals = [(row.actor, row.cause) for row in history if row.action == "approved"]
    assert approvals == [("vm:web_0", f"event {ID} of the recording")] * 2


async def test_every_vm_that_is_named_reads_the_same_document(
    tmp_path: Path,
) -> None:
    async with replaying(tmp_path, Answered(at=at(0), status=200, body=SCHEDULED)) as vm:
        other = await vm.client.get(f"/vm/web_1{DOCUMENT}")
        unknown = await vm.client.get(f"/vm/db{DOCUMENT}")

    assert other.json()["DocumentIncarnation"] == 9
    assert unknown.status_code == 404


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name = 1\n", "line 1 can't be read"),
        (encode(Began(at=NOON, recording=1)), "nothing in it to play back"),
    ],
)
async def test_what_is_no_recording_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)

    with pytest.raises(StartError, match=message):
        async with single_process.running(load(flags={"replay": path}, environ={})):
            pass


async def test_a_recording_that_is_not_there_is_refused(tmp_path: Path) -> None:
    flags: dict[str, object] = {"replay": tmp_path / "none"}

    with pytest.raises(StartError, match="No such file"):
        async with single_process.running(load(flags=flags, environ={})):
            pass
