import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from forewarned.control.v1.changes import Changes, Watcher
from forewarned.core.model import StartCause
from forewarned.core.transitions import Started
from forewarned.service.errors import RequestsForbiddenError
from forewarned.service.records import Commit
from forewarned.service.requests.watch import RequestWatch, SeenRequest
from tests.builders import NOON, a_scope, an_event
from tests.control.control_api import ControlApi, control_api, later

SCOPE = a_scope().id
STARTED = Started(scope_id=SCOPE, at=NOON, event=an_event(), cause=StartCause.APPROVED)


class Reader:
    """Somebody who watches, and takes one message after another."""

    def __init__(self) -> None:
        self.status = 0
        self.last_id = ""
        self.headers: dict[bytes, bytes] = {}
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._rest = b""
        self._hung_up = asyncio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = dict(message["headers"])
        else:
            await self._pieces.put(message["body"])

    async def raw(self) -> str:
        """The next message as it is sent; empty where the stream has ended."""
        while b"\n\n" not in self._rest:
            piece = await self._pieces.get()
            if not piece:
                return ""
            self._rest += piece
        found, _, self._rest = self._rest.partition(b"\n\n")
        return found.decode()

    async def message(self) -> tuple[str, Any]:
        fields = dict(line.split(": ", 1) for line in (await self.raw()).splitlines())
        self.last_id = fields.get("id", self.last_id)
        return fields["event"], msgspec.json.decode(fields["data"])

    def hang_up(self) -> None:
        self._hung_up.set()


@asynccontextmanager
async def watching(
    control: ControlApi, path: str = "/v1/changes", *, last_id: str = "", query: str = ""
) -> AsyncIterator[Reader]:
    reader = Reader()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (b"host", b"localhost"),
            *([(b"last-event-id", last_id.encode())] if last_id else []),
        ],
        "client": ("127.0.0.1", 5),
    }
    task = asyncio.create_task(control.app(scope, reader.receive, reader.send))
    try:
        yield reader
    finally:
        reader.hang_up()
        await task
    assert control.services.changes.watchers == 0


async def test_a_watcher_is_greeted_with_what_is_open(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    async with watching(control) as reader:
        greeting = await reader.message()

    assert reader.status == 200
    assert reader.headers[b"content-type"].startswith(b"text/event-stream")
    assert reader.headers[b"cache-control"] == b"no-store"
    assert greeting == (
        "hello",
        {
            "now": later(),
            "events": [event],
            "truncated": False,
            "resumed": False,
            "lost": None,
        },
    )


async def test_a_watcher_hears_of_every_transition(control: ControlApi) -> None:
    await control.switch_on("web")
    async with watching(control) as reader:
        await reader.message()

        event = await control.schedule("Reboot", "web")
        scheduled = await reader.message()
        approved = await control.post(f"/v1/events/{event['event_id']}/approve")
        names = [(await reader.message())[0] for _ in range(2)]
        completed = await control.post(f"/v1/events/{event['event_id']}/complete")
        last = await reader.message()

    assert scheduled == (
        "scheduled",
        {
            "at": later(),
            "action": "scheduled",
            "scope": "vm/web",
            "event": event,
            "resources": ["web"],
            "cause": "",
        },
    )
    assert names == ["approved", "started"]
    assert approved["status"] == "Started"
    assert last[0] == "completed"
    assert last[1]["event"] == completed


async def test_causes_and_reasons_are_told(control: ControlApi) -> None:
    await control.switch_on("web")
    async with watching(control) as reader:
        await reader.message()

        await control.post("/v1/hosts/rack2/fail")
        started = await reader.message()
        event = await control.schedule("Reboot", "web")
        await control.post(f"/v1/events/{event['event_id']}/cancel", {"reason": "not\ntoday"})
        await reader.message()
        canceled = await reader.message()

    assert (started[0], started[1]["cause"]) == ("started", "host_failure")
    assert (canceled[0], canceled[1]["cause"]) == ("canceled", "not\ntoday")
    assert canceled[1]["event"]["end_reason"] == "not\ntoday"
    assert canceled[1]["event"]["ended_at"] == later()


async def test_changes_of_the_fleet_are_told_without_an_event(control: ControlApi) -> None:
    async with watching(control) as reader:
        await reader.message()

        await control.put_fleet({"vms": [{"name": "new"}]})
        name, told = await reader.message()

    assert name == "resource_added"
    assert (told["event"], told["resources"], told["scope"]) == (None, ["new"], "vm/new")


async def test_a_quiet_stream_shows_that_it_is_alive() -> None:
    async with (
        control_api(changes=Changes(beat=timedelta(0))) as control,
        watching(control) as reader,
    ):
        await reader.message()

        assert await reader.raw() == ": still here"


async def test_a_watcher_that_hangs_up_is_forgotten(control: ControlApi) -> None:
    async with watching(control) as reader:
        await reader.message()
        assert control.services.changes.watchers == 1

    assert control.services.changes.watchers == 0


async def test_a_slow_watcher_is_dropped_and_told_so_last() -> None:
    changes = Changes(queue=2)
    changes.told = "store.0"
    with changes.watch() as watcher:
        changes.hear(Commit(transitions=(STARTED, STARTED), history_ids=(1, 2)))
        changes.hear(Commit(transitions=(STARTED,), history_ids=(3,)))
        changes.hear(Commit(transitions=(STARTED,), history_ids=(4,)))

        told = await _all(watcher)

    assert told.count(b"event: started\n") == 2
    assert told.endswith(b'reconnect to continue"}\n\n')
    assert b"id: store.2\nevent: dropped\n" in told
    assert changes.watchers == 0


async def test_other_watchers_go_on_when_one_is_dropped() -> None:
    changes = Changes(queue=1)
    changes.told = "store.0"
    with changes.watch() as slow, changes.watch() as quick:
        changes.hear(Commit(transitions=(STARTED,), history_ids=(1,)))
        taken = await anext(quick.messages(timedelta(seconds=9)))
        changes.hear(Commit(transitions=(STARTED,), history_ids=(2,)))

        assert taken.startswith(b"id: store.1\nevent: started\n")
        again = await anext(quick.messages(timedelta(seconds=9)))
        assert again == taken.replace(b"store.1", b"store.2")
        assert b"event: dropped\n" in await _all(slow)
        assert changes.watchers == 1


async def test_closing_ends_every_stream_those_to_come_included(control: ControlApi) -> None:
    async with watching(control) as early:
        await early.message()
        control.services.changes.close()

        name, told = await early.message()

        assert name == "closing"
        assert "stopping" in told["message"]
        assert await early.raw() == ""
    async with watching(control) as late:
        assert (await late.message())[0] == "hello"
        assert (await late.message())[0] == "closing"
        assert await late.raw() == ""


async def test_a_store_that_is_unavailable_greets_nobody(control: ControlApi) -> None:
    control.store.is_down = True

    status, error = await control.refused("GET", "/v1/changes")

    assert (status, error["code"]) == (503, "store_unavailable")
    assert control.services.changes.watchers == 0


async def test_a_request_for_the_headers_alone_is_answered_at_once(control: ControlApi) -> None:
    response = await control.http.head("/v1/changes")

    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert control.services.changes.watchers == 0


async def _all(watcher: Watcher) -> bytes:
    return b"".join([piece async for piece in watcher.messages(timedelta(seconds=9))])


async def test_a_watcher_of_requests_hears_what_vms_ask_and_only_while_it_watches(
    control: ControlApi,
) -> None:
    requests = control.services.use_cases.requests
    seen = SeenRequest(
        vm="web", asks="events", method="GET", target="/x", headers=(("a", "b"),), status=200
    )

    async with watching(control, "/v1/requests") as reader:
        greeting = await reader.message()
        requests.tell(seen)
        told = await reader.message()

    assert greeting == ("hello", {"now": later()})
    assert told == (
        "request",
        {
            "at": later(),
            "vm": "web",
            "asks": "events",
            "method": "GET",
            "target": "/x",
            "headers": [["a", "b"]],
            "body": "",
            "status": 200,
            "refusal": "",
        },
    )
    assert not requests.is_active


async def test_a_stream_of_requests_ends_with_the_server(control: ControlApi) -> None:
    async with watching(control, "/v1/requests") as reader:
        await reader.message()
        control.services.close()

        last = await reader.message()

    assert last[0] == "closing"


def test_requests_to_a_server_for_real_vms_can_not_be_watched() -> None:
    watch = RequestWatch(allowed=False)

    with pytest.raises(RequestsForbiddenError), watch.heard_by(lambda _: None):
        pass

    assert not watch.is_active
