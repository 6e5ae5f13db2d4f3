"""A server killed at any moment loses nothing that it has answered for."""

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.effort import amount
from tests.end_to_end.server_process import Server, ready, start
from tests.preloaded import Process

VMS = 50
EVENTS_PER_VM = amount(8, 20)
KILLS = amount(3, 5)


def test_no_approval_that_was_answered_200_is_lost_when_the_server_is_killed(
    tmp_path: Path,
) -> None:
    """I14, I23: hundreds of approvals, and SIGKILL at random moments."""
    seed = random.randrange(1_000_000)
    chance = random.Random(seed)
    server, running = _started(tmp_path)
    waiting = _scheduled(server)
    acknowledged: set[str] = set()

    # Kills land where a share of the approvals is done, wherever the server is by then.
    shares = sorted(chance.randrange(1, len(waiting)) for _ in range(KILLS))
    for share in [*shares, len(waiting)]:
        _approve_until(server, waiting, acknowledged, stop_at=share, chance=chance)
        _stop(running, signal.SIGKILL)
        server, running = _started(tmp_path)
        started = {event["event_id"] for event in _events(server) if event["started_at"]}
        assert acknowledged <= started, f"lost with seed {seed}: {acknowledged - started}"

    starts = [row["event_id"] for row in _history(server) if row["action"] == "started"]
    _stop(running, signal.SIGTERM)
    assert acknowledged == set(waiting)
    assert len(starts) == len(set(starts)), "an event has started twice"


def _started(folder: Path) -> tuple[Server, Process]:
    fleet = folder / "fleet.toml"
    fleet.write_text("".join(f'[[vms]]\nname = "vm-{number}"\n' for number in range(VMS)))
    running = start(folder, "--fleet", str(fleet))
    return ready(running, folder), running


def _stop(running: Process, number: int) -> None:
    with running:
        running.send_signal(number)


def _scheduled(server: Server) -> dict[str, str]:
    """Open events, each with the VM that is going to approve it."""
    names = [f"vm-{number}" for number in range(VMS)]
    for name in names:
        server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01")
    events: dict[str, str] = {}
    for _ in range(EVENTS_PER_VM):
        # Each VM is a scope of its own, and gets an event of its own.
        made = server.call("POST", "/v1/events", {"type": "Freeze", "resources": names})
        events |= {event["event_id"]: event["resources"][0] for event in made["events"]}
    assert len(events) == VMS * EVENTS_PER_VM
    return events


def _approve_until(
    server: Server,
    waiting: dict[str, str],
    acknowledged: set[str],
    *,
    stop_at: int,
    chance: random.Random,
) -> None:
    """Approve over several connections; the server dies under them once `stop_at` is reached."""
    left = [event_id for event_id in waiting if event_id not in acknowledged]
    chance.shuffle(left)
    enough = threading.Event()

    def approve(event_id: str) -> None:
        if enough.is_set() and stop_at < len(waiting):
            return
        path = f"/vm/{waiting[event_id]}/metadata/scheduledevents?api-version=2020-07-01"
        try:
            answer = server.approve(event_id, path=path)
        except (OSError, HTTPException):
            return
        assert answer.status == 200, answer.body
        acknowledged.add(event_id)
        if len(acknowledged) >= stop_at and not enough.is_set() and stop_at < len(waiting):
            # Here, with other approvals in the middle of their transactions.
            os.kill(server.pid, signal.SIGKILL)
            enough.set()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(approve, left))


def _events(server: Server) -> list[dict[str, str]]:
    found: list[dict[str, str]] = server.call("GET", "/v1/events?status=all&limit=10000")["events"]
    return found


def _history(server: Server) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    before = ""
    while True:
        page = server.call("GET", f"/v1/history?limit=10000{before}")
        rows += page["history"]
        if page["next"] is None:
            return rows
        before = f"&before={page['next']}"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_told_to_stop_stops_cleanly(tmp_path: Path, signal_number: int) -> None:
    running = start(tmp_path)
    ready(running, tmp_path).get()

    _stop(running, signal_number)

    assert running.returncode == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
