"""A real server and a receiver that checks signatures: each message arrives, in order per scope (I23)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.cluster.waiting import wait_until
from tests.end_to_end.mortal_server import MortalServer
from tests.end_to_end.server_process import Server, serving
from tests.publishing.receiver import NEVER, Received, Receiver, Reply, receiving

STEPS: Final = ("Scheduled", "Approved", "Started", "Completed")
ASKED: Final = 2
"""Seconds of Retry-After: more than a message or a subscription waits by itself at first."""
SLACK: Final = 0.05
"""Two clocks are compared: the test's and the server's."""
FLEET: Final = '[[vms]]\nname = "web"\n[[vms]]\nname = "db"\n'


def subscribe(server: Server, receiver: Receiver) -> str:
    """Returns the secret."""
    target = {"kind": "webhook", "url": receiver.url}
    added = server.call("POST", "/v1/subscriptions", {"name": "ops", "target": target})
    secret: str = added["secret"]
    return secret


def schedule(server: Server, vm: str) -> str:
    # VMs that read are given notice.
    server.get(f"/vm/{vm}/metadata/scheduledevents?api-version=2020-07-01")
    made = server.call("POST", "/v1/events", {"type": "Reboot", "resources": [vm]})
    event_id: str = made["events"][0]["event_id"]
    return event_id


def approve(server: Server, event_id: str) -> None:
    server.call("POST", f"/v1/events/{event_id}/approve", {})


def complete(server: Server) -> None:
    server.call("POST", "/v1/clock/step", {"by": "20m"})


def health(server: Server) -> Any:  # JSON
    return server.call("GET", "/v1/subscriptions/ops")["health"]


async def wait_until_delivered(server: Server, number: int) -> None:
    """And recorded, which is a moment after the answer."""
    await asyncio.to_thread(wait_until, lambda: health(server)["delivered"] >= number)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[MortalServer]:
    started = await asyncio.to_thread(MortalServer, folder)
    try:
        yield started
    finally:
        await asyncio.to_thread(started.stop)


async def test_i23_each_step_arrives_signed_and_in_order_although_the_server_is_killed_between_any_two(
    tmp_path: Path,
) -> None:
    """It is killed when the message before has been delivered and the next one is under way, which
    comes again, once.
    """
    seen: set[str] = set()

    def ignore_first(received: Received) -> Reply | None:
        message_id = received.headers["webhook-id"]
        if message_id in seen:
            return Reply()
        seen.add(message_id)
        return NEVER

    async with receiving(ignore_first) as receiver, running(tmp_path) as mortal:
        secret = await asyncio.to_thread(subscribe, mortal.server, receiver)
        event_id = await asyncio.to_thread(schedule, mortal.server, "web")
        for number, status in enumerate(STEPS):
            if status == "Approved":
                await asyncio.to_thread(approve, mortal.server, event_id)
            if status == "Completed":
                await asyncio.to_thread(complete, mortal.server)
            await receiver.wait_for(2 * number + 1)
            await asyncio.to_thread(mortal.kill)
            await receiver.wait_for(2 * number + 2)
            await wait_until_delivered(mortal.server, number + 1)
        afterwards = await asyncio.to_thread(health, mortal.server)

    messages = [each.verified(secret) for each in receiver.received]
    assert [each["data"]["status"] for each in messages] == [step for step in STEPS for _ in "12"]
    assert len({each["id"] for each in messages}) == len(STEPS)
    assert (afterwards["delivered"], afterwards["pending"], afterwards["undelivered"]) == (4, 0, 0)
    assert "Traceback" not in (tmp_path / "log").read_text()


async def test_i23_each_step_arrives_although_the_server_is_killed_as_soon_as_it_has_happened(
    tmp_path: Path,
) -> None:
    """What is under way by then comes again, which is why each is counted once."""

    async with receiving() as receiver, running(tmp_path) as mortal:

        def happen() -> None:
            subscribe(mortal.server, receiver)
            event_id = schedule(mortal.server, "web")
            mortal.kill()
            approve(mortal.server, event_id)
            mortal.kill()
            complete(mortal.server)
            mortal.kill()

        await asyncio.to_thread(happen)
        await wait_until_delivered(mortal.server, len(STEPS))

    arrived = [each.json for each in receiver.received]
    once = {each["id"]: each["data"]["status"] for each in arrived}
    assert [*once.values()] == [*STEPS]


async def test_a_receiver_that_fails_and_asks_for_time_gets_it_and_then_each_message_in_order(
    tmp_path: Path,
) -> None:
    """It answers 500, then 429 with Retry-After to a message of another scope, then 200."""
    (tmp_path / "fleet.toml").write_text(FLEET)
    times: list[float] = []

    def answer(_: Received) -> Reply:
        times.append(time.monotonic())
        match len(times):
            case 1:
                return Reply(status=500)
            case 2:
                return Reply(status=429, headers={"Retry-After": str(ASKED)})
            case _:
                return Reply()

    def happen(server: Server) -> None:
        for event_id in (schedule(server, "web"), schedule(server, "db")):
            approve(server, event_id)
        complete(server)

    flags = ("--fleet", str(tmp_path / "fleet.toml"))
    with serving(tmp_path, *flags) as server:
        async with receiving(answer) as receiver:
            secret = await asyncio.to_thread(subscribe, server, receiver)
            await asyncio.to_thread(happen, server)
            await wait_until_delivered(server, 2 * len(STEPS))
            afterwards = await asyncio.to_thread(health, server)

    messages = [each.verified(secret) for each in receiver.received]
    accepted = [each["data"] for each in messages[2:]]
    for scope in ("vm/web", "vm/db"):
        assert [each["status"] for each in accepted if each["scope"] == scope] == [*STEPS]
    assert len(accepted) == 2 * len(STEPS)
    assert times[2] - times[1] >= ASKED - SLACK
    assert (afterwards["failed"], afterwards["pending"], afterwards["undelivered"]) == (2, 0, 0)
