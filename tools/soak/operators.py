"""Who changes things: operators who schedule, cancel and complete events, and an actuator."""

import asyncio
import itertools
import random
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from benchmarks.product import Product
from tools.soak.requests import beats, call
from tools.soak.tally import Tally

TYPES: Final = ("Freeze", "Reboot", "Redeploy")
ACTUATOR: Final = "soak"
_CANCEL_AFTER: Final = 20.0
"""Seconds: most VMs have read of the event by then."""
_WORK: Final = 5.0
"""Seconds that an operator takes for an event before reporting that it is complete."""
_CLAIM_WAIT: Final = 5


class Fate(Enum):
    APPROVED = "approved"
    """By its VM, once that has read of it."""
    CANCELED = "canceled"
    """By an operator."""
    LEFT = "left"
    """It starts at its NotBefore."""


def fate(type_: str, event_id: str) -> Fate:
    """What becomes of an event: the same for all who know its id, and the same share of any."""
    drawn = int(event_id[-2:], 16) / 256
    if drawn < 0.2:
        # Of the shortest notice, so that their number is steady after ten minutes.
        return Fate.LEFT if type_ == "Redeploy" else Fate.CANCELED
    return Fate.APPROVED


class Operators:
    """They complete events of VMs without an actuator, once they are told that these started."""

    def __init__(
        self, nodes: Sequence[Product], vms: Sequence[str], *, rate: float, tally: Tally
    ) -> None:
        """`rate` is how many events are scheduled in a second."""
        self.scheduled: set[str] = set()
        self._ports = itertools.cycle([node.control for node in nodes])
        self._vms = vms
        self._rate = rate
        self._tally = tally
        self._chance = random.Random(0)
        self._started: asyncio.Queue[str] = asyncio.Queue()

    def hear(self, change: Mapping[str, Any]) -> None:
        """A message of `/v1/changes`. Any: JSON."""
        if change["action"] == "started" and change["scope"].startswith("vm/"):
            self._started.put_nowait(change["event"]["event_id"])

    async def run(self) -> None:
        async with asyncio.TaskGroup() as under_way:
            under_way.create_task(self._complete_all(under_way))
            async for _ in beats(self._rate):
                under_way.create_task(self._schedule())

    async def _schedule(self) -> None:
        wanted = {
            "type": self._chance.choice(TYPES),
            "resources": [self._chance.choice(self._vms)],
        }
        made: Mapping[str, Any] = {"events": []}  # Any: JSON
        with self._tally.doing("schedule"):
            made = await call(next(self._ports), "/v1/events", wanted)
        for event in made["events"]:
            event_id: str = event["event_id"]
            self.scheduled.add(event_id)
            if fate(event["type"], event_id) is Fate.CANCELED:
                await asyncio.sleep(_CANCEL_AFTER)
                await self._post("cancel", event_id, {"reason": "plans have changed"})

    async def _complete_all(self, under_way: asyncio.TaskGroup) -> None:
        while True:
            under_way.create_task(self._complete(await self._started.get()))

    async def _complete(self, event_id: str) -> None:
        await asyncio.sleep(_WORK)
        await self._post("complete", event_id, {})

    async def _post(self, action: str, event_id: str, body: object) -> None:
        with self._tally.doing(action):
            await call(next(self._ports), f"/v1/events/{event_id}/{action}", body)


class Actuator:
    """Carries out the events of VMs in scale sets, without doing anything."""

    def __init__(self, nodes: Sequence[Product], *, tally: Tally) -> None:
        self._ports = itertools.cycle([node.control for node in nodes])
        self._tally = tally

    async def run(self) -> None:
        wanted = {"actuator": ACTUATOR, "holder": "soak", "limit": 8, "wait": _CLAIM_WAIT}
        while True:
            claimed: Mapping[str, Any] = {"tasks": []}  # Any: JSON
            with self._tally.doing("claim"):
                claimed = await call(next(self._ports), "/v1/tasks/claim", wanted)
            for task in claimed["tasks"]:
                await self._carry_out(task)
            if not claimed["tasks"]:
                # A server that refuses must not be asked all the time.
                await asyncio.sleep(0.1)

    async def _carry_out(self, task: Mapping[str, Any]) -> None:
        path = f"/v1/tasks/{task['event_id']}/{task['vm']}"
        seen, attempt = {"host": task["host"]}, task["attempt"]
        with self._tally.doing("carry out"):
            port = next(self._ports)
            await call(port, f"{path}/begin", {"attempt": attempt, "before": seen})
            await call(port, f"{path}/finish", {"attempt": attempt, "after": seen})
