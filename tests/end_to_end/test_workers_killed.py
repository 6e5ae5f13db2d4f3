"""Each role of a supervised server, killed while approvals and polls are in flight."""

import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.effort import amount
from tests.end_to_end.load import BROKEN, Blow, Kind, Load, Vm, broken_promises
from tests.end_to_end.server_process import Server
from tests.end_to_end.supervised_server import (
    PATIENCE,
    SupervisedServer,
    is_alive,
    start_supervised,
)

ADDRESSES: Final = {f"vm-{number}": f"127.9.1.{number}" for number in range(1, 17)}
KILLS: Final = amount(2, 4)
SHARE: Final = 5
"""Approvals of each VM about each kill."""

UNAVAILABLE: Final = "503 1"
BROKEN_OFF: Final = str(BROKEN)


@pytest.mark.parametrize(
    ("victims", "refusals", "failures"),
    [
        pytest.param([["poller"]], {BROKEN_OFF}, {BROKEN}, id="poller", marks=pytest.mark.thorough),
        pytest.param(
            [["writer"]], {UNAVAILABLE}, set[int](), id="writer", marks=pytest.mark.thorough
        ),
        pytest.param(
            [["writer", "poller"], ["poller", "writer"]],
            {UNAVAILABLE, BROKEN_OFF},
            {BROKEN},
            id="writer-and-poller",
        ),
    ],
)
def test_a_worker_killed_with_work_in_flight_is_healed_and_loses_nothing(
    tmp_path: Path, victims: list[list[str]], refusals: set[str], failures: set[int]
) -> None:
    """I7, I14, I23, I24: who is refused may ask again; a poll is answered or breaks off."""
    seed = random.randrange(1_000_000)
    chance = random.Random(seed)
    with start_supervised(tmp_path, ADDRESSES) as supervised:
        load = Load(supervised.server, scheduled(supervised.server))
        with load.polling():
            for number in range(KILLS):
                workers = victims[number % len(victims)]
                lives = {worker: len(supervised.lives(worker)) for worker in workers}
                pids = [supervised.pid(worker) for worker in workers]
                with load.approvals(share(number), blow(chance, partial(kill, pids))):
                    for worker in workers:
                        supervised.healed(worker, after=lives[worker])
            with load.approvals(share(KILLS)):
                pass

        judge(load, supervised.server, refusals=refusals, failures=failures, seed=seed)


@pytest.mark.thorough  # test_workers.py kills one too, and test_kill.py a server under load
def test_a_supervisor_killed_with_work_in_flight_is_started_again_and_has_lost_nothing(
    tmp_path: Path,
) -> None:
    """I7, I14, I23: its processes go with it, in no order."""
    seed = random.randrange(1_000_000)
    chance = random.Random(seed)
    with contextlib.ExitStack() as stack:
        supervised = stack.enter_context(start_supervised(tmp_path, ADDRESSES))
        server = supervised.server
        load = Load(server, scheduled(server))
        with load.polling():
            for number in range(KILLS):
                pids = supervised.pids()
                with load.approvals(share(number), blow(chance, supervised.running.kill)):
                    supervised.running.wait(PATIENCE)
                    supervised = stack.enter_context(started_again(tmp_path, server))
                    assert [pid for pid in pids if is_alive(pid)] == []
            with load.approvals(share(KILLS)):
                pass

        judge(load, server, refusals={BROKEN_OFF, UNAVAILABLE}, failures={BROKEN}, seed=seed)


def started_again(
    folder: Path, server: Server
) -> contextlib.AbstractContextManager[SupervisedServer]:
    return start_supervised(
        folder, ADDRESSES, "--metadata", server.metadata, "--control", server.control
    )


def scheduled(server: Server) -> list[Vm]:
    """VMs that have seen all the events they are going to approve."""
    vms = [Vm(name=name, address=address) for name, address in ADDRESSES.items()]
    for vm in vms:
        server.get(source=vm.address)
    for _ in range(SHARE * (KILLS + 1)):
        one, other = freezes(server), freezes(server)
        for vm in vms:
            vm.pairs.append((one[vm.name], other[vm.name]))
    return vms


def freezes(server: Server) -> dict[str, str]:
    """An event of each VM."""
    asked = {"type": "Freeze", "resources": list(ADDRESSES)}
    events = server.call("POST", "/v1/events", asked)["events"]
    return {name: event["event_id"] for event in events for name in event["resources"]}


def share(number: int) -> slice:
    return slice(SHARE * number, SHARE * (number + 1))


def blow(chance: random.Random, kill: Callable[[], None]) -> Blow:
    """At a moment when many of a share's approvals have yet to come."""
    return Blow(
        after=chance.randrange(1, SHARE * len(ADDRESSES) // 2),
        kind=chance.choice(list(Kind)),
        kill=kill,
    )


def kill(pids: Sequence[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def judge(load: Load, server: Server, *, refusals: set[str], failures: set[int], seed: int) -> None:
    """What was answered, against what the server holds now that all is over."""
    events = server.call("GET", "/v1/events?status=all&limit=10000")["events"]
    rows = server.call("GET", "/v1/history?limit=10000")["history"]
    started = {event["event_id"] for event in events if event["started_at"]}
    recorded = Counter((row["action"], row["event_id"]) for row in rows)

    assert len(load.in_flight) == KILLS
    assert load.torn > 0, f"seed {seed}: nothing was in flight: {load.in_flight}"
    assert {refusal for vm in load.vms for refusal in vm.refusals} <= refusals, f"seed {seed}"
    assert {failure for vm in load.vms for failure in vm.failures} <= failures, f"seed {seed}"
    for vm in load.vms:
        granted = {one for pair in vm.granted for one in pair}
        assert len(vm.granted) + len(vm.left) == len(vm.pairs)
        assert granted <= started, f"seed {seed}: {vm.name} has lost {granted - started}"
        for pair in vm.left:
            assert len(started.intersection(pair)) in {0, 2}, f"seed {seed}: half of {pair}"
        for event_id in (one for pair in vm.pairs for one in pair):
            times = [recorded[action, event_id] for action in ("approved", "started")]
            assert times == [event_id in started] * 2, f"seed {seed}: {event_id}: {times}"
        assert all(vm.looks), f"{vm.name} was never answered"
        assert list(broken_promises(vm)) == [], f"seed {seed}"
        shown = server.get(source=vm.address).json["Events"]
        assert {event["EventId"]: event["EventStatus"] == "Started" for event in shown} == {
            one: one in started for pair in vm.pairs for one in pair
        }
