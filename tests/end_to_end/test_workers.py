"""A server of three processes, and each of them killed."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Final

import pytest

from forewarned.feed.writer_end import PATIENCE as LONGEST_SYNC
from tests.end_to_end.server_process import Server, start
from tests.end_to_end.supervised_server import (
    FLAGS,
    PATIENCE,
    SupervisedServer,
    is_alive,
    start_supervised,
    wait_until,
)

VMS: Final = {f"vm-{number}": f"127.9.0.{number}" for number in range(1, 9)}
"""VMs by name, with their addresses."""


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[SupervisedServer]:
    """One that a test may kill."""
    with start_supervised(tmp_path, VMS) as running:
        yield running


@pytest.fixture(scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisedServer]:
    with start_supervised(tmp_path_factory.mktemp("shared"), VMS) as running:
        yield running


@pytest.fixture
def shared(_running: SupervisedServer) -> SupervisedServer:
    """One that other tests have used, none has killed, and that was reset since."""
    _running.server.call("POST", "/v1/reset")
    return _running


def schedule(server: Server, name: str) -> str:
    made = server.call("POST", "/v1/events", {"type": "Freeze", "resources": [name]})
    event_id: str = made["events"][0]["event_id"]
    return event_id


@dataclass(slots=True)
class Polls:
    """What VMs that poll without end are answered, until the block is left."""

    server: Server
    vms: dict[str, str]
    statuses: dict[str, list[int]] = field(default_factory=dict)
    """An answer that did not come is a 0."""
    incarnations: dict[str, list[int]] = field(default_factory=dict)
    _enough: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def __call__(self) -> Iterator["Polls"]:
        threads = [threading.Thread(target=self._poll, args=vm) for vm in self.vms.items()]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._enough.set()
            for thread in threads:
                thread.join()

    def _poll(self, name: str, address: str) -> None:
        statuses = self.statuses.setdefault(name, [])
        incarnations = self.incarnations.setdefault(name, [])
        while not self._enough.wait(0.05):
            try:
                answer = self.server.get(source=address)
            except (OSError, HTTPException):
                statuses.append(0)
                continue
            statuses.append(answer.status)
            if answer.status == 200:
                incarnations.append(answer.json["DocumentIncarnation"])

    def answered(self, vms: dict[str, str], *, more: int = 5) -> None:
        """Wait until each of these has been answered so many times more."""
        before = {name: len(self.incarnations.get(name, ())) for name in vms}
        wait_until(
            lambda: all(len(self.incarnations.get(name, ())) >= before[name] + more for name in vms)
        )

    def fell(self) -> dict[str, list[int]]:
        """The VMs that saw their incarnation fall."""
        return {name: seen for name, seen in self.incarnations.items() if seen != sorted(seen)}


def test_an_event_is_announced_approved_and_completed_across_processes(
    shared: SupervisedServer,
) -> None:
    server = shared.server
    for source in VMS.values():
        assert server.get(source=source).json == {"DocumentIncarnation": 1, "Events": []}

    for name, source in VMS.items():
        event_id = schedule(server, name)
        [shown] = server.get(source=source).json["Events"]
        assert shown["EventId"] == event_id
        assert server.approve(event_id, source=source).status == 200
        [started] = server.get(source=source).json["Events"]
        assert started["EventStatus"] == "Started"
    server.call("POST", "/v1/clock/step", {"by": "1h"})

    for source in VMS.values():
        assert server.get(source=source).json["Events"] == []


def test_a_change_is_visible_to_vms_once_its_request_is_answered(
    shared: SupervisedServer,
) -> None:
    """Commit, tell, answer: also when the one who is told is another process."""
    server = shared.server
    for name, source in VMS.items():
        server.get(source=source)
        for count in range(1, 21):
            schedule(server, name)
            assert len(server.get(source=source).json["Events"]) == count


@contextlib.contextmanager
def standing_still(supervised: SupervisedServer, worker: str) -> Iterator[None]:
    os.kill(supervised.pid(worker), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(supervised.pid(worker), signal.SIGCONT)


def over_v1(server: Server) -> None:
    schedule(server, "vm-1")


def over_arm(server: Server) -> None:
    server.ask_arm("GET", "/subscriptions/s/resourcegroups?api-version=2024-11-01")


@pytest.mark.parametrize("ask", [over_v1, over_arm])
def test_both_listeners_wait_for_a_poller_that_is_behind_but_not_forever(
    shared: SupervisedServer, ask: Callable[[Server], None]
) -> None:
    """A client answered while the poller is behind might poll it, and miss its own change."""
    with standing_still(shared, "poller"):
        began = time.monotonic()
        ask(shared.server)
        waited = time.monotonic() - began

    longest = LONGEST_SYNC.total_seconds()
    assert 0.9 * longest < waited < longest + 30


def test_a_foreign_event_is_refused_as_one_that_does_not_exist(
    shared: SupervisedServer,
) -> None:
    """I12."""
    server = shared.server
    server.get(source=VMS["vm-1"])
    foreign = schedule(server, "vm-1")
    absent = "00000000-0000-4000-8000-000000000000"

    answers = {asked: server.approve(asked, source=VMS["vm-2"]) for asked in (foreign, absent)}

    assert {asked: answer.status for asked, answer in answers.items()} == {
        foreign: 400,
        absent: 400,
    }
    assert {answer.body.replace(asked.encode(), b"") for asked, answer in answers.items()} == {
        b'{"error":"event  was not found"}'
    }


def test_a_vm_reads_about_itself_and_stays_switched_on_while_it_polls(
    shared: SupervisedServer,
) -> None:
    """I28."""
    server, source = shared.server, VMS["vm-2"]
    [latest] = server.call("GET", "/v1/history?limit=1")["history"]
    path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
    assert server.get(path, source=source).body == b"vm-2"

    server.get(source=source)
    for _ in range(3):
        server.call("POST", "/v1/clock/step", {"by": "23h"})
        server.get(source=source)

    rows = server.call("GET", "/v1/history?limit=1000")["history"]
    mine = [row for row in rows if row["scope"] == "vm/vm-2" and row["id"] > latest["id"]]
    actions = {row["action"] for row in mine}
    assert "activated" in actions
    assert "deactivated" not in actions


def test_a_poller_that_is_killed_is_restarted_and_loses_nothing(
    supervised: SupervisedServer,
) -> None:
    """I7, I23."""
    server = supervised.server
    for name, source in VMS.items():
        server.get(source=source)
        schedule(server, name)

    with Polls(server, VMS)() as polls:
        polls.answered(VMS)
        supervised.kill("poller")
        for name in VMS:
            schedule(server, name)
        supervised.healed("poller")
        for name in VMS:
            schedule(server, name)
        polls.answered(VMS)

    assert polls.fell() == {}
    assert {status for name in VMS for status in polls.statuses[name]} <= {0, 200}
    assert [polls.incarnations[name][-1] for name in VMS] == [4] * len(VMS)


@pytest.mark.thorough
def test_a_writer_that_is_killed_is_healed_and_loses_nothing(supervised: SupervisedServer) -> None:
    """I14, I23, I24."""
    server = supervised.server
    waiting: dict[str, str] = {}
    for name, source in VMS.items():
        server.get(source=source)
        waiting |= {schedule(server, name): source for _ in range(10)}
    granted: set[str] = set()
    refusals: list[str] = []

    with Polls(server, VMS)() as polls:
        polls.answered(VMS)
        for life, share in enumerate((0.2, 0.5, 0.8), 1):
            approve(server, waiting, granted, until=int(share * len(waiting)))
            supervised.kill("writer")
            left = next(event_id for event_id in waiting if event_id not in granted)
            answer = server.approve(left, source=waiting[left])
            refusals.append(f"{answer.status} {answer.headers.get('retry-after')}")
            polls.answered(VMS)
            supervised.healed("writer", after=life)
        wait_until(lambda: approve(server, waiting, granted, until=len(waiting)))
        polls.answered(VMS)

    events = server.call("GET", "/v1/events?status=all&limit=10000")["events"]
    rows = server.call("GET", "/v1/history?limit=10000")["history"]
    starts = [row["event_id"] for row in rows if row["action"] == "started"]
    assert refusals == ["503 1"] * 3
    assert granted == set(waiting)
    assert granted <= {event["event_id"] for event in events if event["started_at"]}
    assert len(starts) == len(set(starts)), "an event has started twice"
    assert polls.fell() == {}
    assert {status for seen in polls.statuses.values() for status in seen} == {200}


def approve(server: Server, waiting: dict[str, str], granted: set[str], *, until: int) -> bool:
    """Approve until so many have been; whether there are."""
    for event_id, source in waiting.items():
        if len(granted) >= until:
            break
        if event_id not in granted and server.approve(event_id, source=source).status == 200:
            granted.add(event_id)
    return len(granted) >= until


def test_a_supervisor_told_to_stop_takes_every_process_with_it(tmp_path: Path) -> None:
    with start_supervised(tmp_path, VMS) as supervised:
        pids = supervised.pids()
        supervised.server.get(source=VMS["vm-1"])

        supervised.running.send_signal(signal.SIGTERM)
        supervised.running.wait(PATIENCE)

        assert supervised.running.returncode == 0
        assert [pid for pid in pids if is_alive(pid)] == []
        assert "Traceback" not in supervised.log()


def test_a_supervisor_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    """I23: and another one can begin at once, at the same addresses, with the same state."""
    with start_supervised(tmp_path, VMS) as supervised:
        pids, server = supervised.pids(), supervised.server
        server.get(source=VMS["vm-1"])
        schedule(server, "vm-1")

        supervised.running.kill()
        supervised.running.wait(PATIENCE)
        with start_supervised(
            tmp_path, VMS, "--metadata", server.metadata, "--control", server.control
        ) as next_:
            document = next_.server.get(source=VMS["vm-1"]).json
            assert [pid for pid in pids if is_alive(pid)] == []

            # Where no other begins, its addresses become free.
            next_.running.kill()
            host, _, port = server.metadata.partition(":")
            wait_until(lambda: not is_open(host, int(port)))

    assert document["DocumentIncarnation"] == 2


def is_open(host: str, port: int) -> bool:
    with contextlib.suppress(ConnectionError), socket.create_connection((host, port), timeout=30):
        return True
    return False


def test_a_second_server_of_the_same_state_says_why_it_can_not_start(
    shared: SupervisedServer,
) -> None:
    writer = shared.pid("writer")
    with start(shared.folder, *FLAGS) as second:
        second.wait(PATIENCE)

    assert second.returncode == 1
    assert f"is in use by process {writer}" in shared.log()
    assert shared.server.get(source=VMS["vm-1"]).status == 200


def test_a_second_server_at_the_same_address_says_why_it_can_not_start(
    shared: SupervisedServer, tmp_path: Path
) -> None:
    with start(tmp_path, *FLAGS, "--metadata", shared.server.metadata) as second:
        second.wait(PATIENCE)

    assert second.returncode == 1
    assert f"can't listen on {shared.server.metadata}" in (tmp_path / "log").read_text()
