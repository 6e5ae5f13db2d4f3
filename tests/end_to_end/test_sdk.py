"""The SDK and the server, each in a process of its own."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarned.client import Change, ChangeKind, Ending, EventSource, EventType, RefusedError
from tests.client.drivers import DRIVERS, MakeDriver
from tests.end_to_end.server_process import Server, ready, start


@pytest.fixture(params=sorted(DRIVERS))
def client(request: pytest.FixtureRequest) -> MakeDriver:
    return DRIVERS[request.param]


def test_an_event_is_followed_from_notice_to_recovery(
    client: MakeDriver, shared_server: Server
) -> None:
    """With the long poll: no change waits for the next second."""
    server = shared_server
    with client(server.metadata) as events:
        assert events.document().events == ()
        assert events.me().name == "web"
        server.call("POST", "/v1/events", {"type": "Reboot", "resources": ["web"]})
        kinds = []
        for change in events.watch(only_mine=True, poll=60, timeout=120):
            kinds.append(change.kind)
            match change.kind:
                case ChangeKind.APPEARED:
                    assert change.event.type is EventType.REBOOT
                    assert change.event.source is EventSource.USER
                    assert change.event.not_before is not None
                    events.approve(change.event)
                case ChangeKind.STARTED:
                    server.call("POST", "/v1/clock/step", {"by": "10m"})
                case _:
                    assert change.ending is Ending.COMPLETED
                    break

    assert kinds == [ChangeKind.APPEARED, ChangeKind.STARTED, ChangeKind.GONE]


def test_a_canceled_event_is_told_as_canceled(client: MakeDriver, shared_server: Server) -> None:
    server = shared_server
    with client(server.metadata) as events:
        events.document()
        made = server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})
        watching = events.watch(timeout=120)
        appeared = next(watching)
        server.call("POST", f"/v1/events/{appeared.event.event_id}/cancel")
        gone = next(watching)

    assert made
    assert (gone.kind, gone.ending) == (ChangeKind.GONE, Ending.CANCELED)


def test_an_unknown_event_cannot_be_approved(client: MakeDriver, shared_server: Server) -> None:
    with (
        client(shared_server.metadata) as events,
        pytest.raises(RefusedError, match="was not found"),
    ):
        events.approve("C7061BAC-AFDC-4513-B24B-AA5F13A16123")


def test_a_watch_goes_on_over_a_killed_server(client: MakeDriver, tmp_path: Path) -> None:
    """F1: each change once, before the kill, during it and after."""
    with _server(tmp_path, "127.0.0.1:0") as server, client(server.metadata) as events:
        events.document()
        watching = events.watch(poll=0.05, timeout=240)
        _schedule(server, "Freeze")
        found = [next(watching)]
        # While no server runs, the watch is in the middle of its requests.
        rest = _Collecting(watching, count=2)
        os.kill(server.pid, signal.SIGKILL)
        with _server(tmp_path, server.metadata) as again:
            again.call("POST", f"/v1/events/{found[0].event.event_id}/cancel")
            _schedule(again, "Redeploy")
            found += rest.all()
            now = events.document()

    told = [(change.kind, change.event.type) for change in found]
    assert told[0] == (ChangeKind.APPEARED, EventType.FREEZE)
    assert sorted(told[1:]) == [
        (ChangeKind.APPEARED, EventType.REDEPLOY),
        (ChangeKind.GONE, EventType.FREEZE),
    ]
    assert [event.type for event in now.events] == [EventType.REDEPLOY]


def _schedule(server: Server, type: str) -> None:
    server.call("POST", "/v1/events", {"type": type, "resources": ["web"]})


@contextlib.contextmanager
def _server(folder: Path, metadata: str) -> Iterator[Server]:
    """One that may be killed, and come back where it was."""
    with start(folder, "--metadata", metadata) as running:
        try:
            yield ready(running, folder)
        finally:
            running.send_signal(signal.SIGTERM)


class _Collecting:
    """Takes changes on a thread of its own."""

    def __init__(self, watching: Iterator[Change], *, count: int) -> None:
        self._found: list[Change] = []
        self._thread = threading.Thread(target=self._collect, args=[watching, count])
        self._thread.start()

    def _collect(self, watching: Iterator[Change], count: int) -> None:
        self._found.extend(next(watching) for _ in range(count))

    def all(self) -> list[Change]:
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self._found
