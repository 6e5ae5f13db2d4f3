"""A real actuator with the command driver, which kills itself with SIGKILL at one of its steps."""

import asyncio
import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from typing_extensions import override

from forewarned.actuators.actuator import Actuator, Equipped
from forewarned.actuators.command.driver import CommandDriver
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.desk import Assignment, TaskRef
from forewarned.actuators.driver import Action, Effect, Progress, Sighting, Verdict, Vm
from forewarned.actuators.http_desk import HttpDesk, Server
from forewarned.actuators.slots import Limits
from forewarned.core.model import EventType

STEPS = (
    "claim",
    "observe",
    "survey",
    "mark",
    "begin",
    "act",
    "wait for its program",
    "observe again",
    "finish",
    "stop",
)
"""What is done; it may die before each of them."""


class Life:
    def __init__(self, step: int | None) -> None:
        """It dies before the step of this number; None for never."""
        self._left = step

    def go_on(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._left is not None:
            self._left -= 1


class MortalDesk(HttpDesk):
    def __init__(self, server: Server, life: Life, stop: asyncio.Event) -> None:
        super().__init__(server, actuator="rack1", holder=f"test:{os.getpid()}")
        self._life = life
        self._stop = stop
        self._has_claimed = False

    @override
    async def claim(self, *, limit: int, patience: timedelta) -> list[Assignment]:
        if not self._has_claimed:
            self._life.go_on()
        self._has_claimed = True
        return await super().claim(limit=limit, patience=patience)

    @override
    async def begin(self, task: TaskRef, before: Sighting) -> None:
        self._life.go_on()
        await super().begin(task, before)

    @override
    async def finish(self, task: TaskRef, after: Sighting) -> None:
        self._life.go_on()
        await super().finish(task, after)
        self._life.go_on()
        self._stop.set()

    @override
    async def fail(
        self, task: TaskRef, error: str, *, unharmed: bool, after: Sighting | None
    ) -> None:
        await super().fail(task, error, unharmed=unharmed, after=after)
        self._stop.set()


class MortalDriver(CommandDriver):
    def __init__(self, argv: Sequence[str], state: Path, life: Life) -> None:
        super().__init__({EventType.REBOOT: tuple(argv)}, (), state)
        self._life = life

    @override
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        self._life.go_on()
        return await super().survey(action, vm)

    @override
    async def observe(self, vm: Vm) -> Sighting:
        self._life.go_on()
        return await super().observe(vm)

    @override
    async def mark(self, vm: Vm, key: str) -> None:
        self._life.go_on()
        await super().mark(vm, key)

    @override
    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        self._life.go_on()
        await super().act(action, vm, key, lambda _: self._life.go_on())


def run(url: str, argv: Sequence[str], state: Path, step: int | None) -> None:
    """Carry out one task, or die before that."""
    asyncio.run(_run(Server(url=url), argv, state, Life(step)))


async def _run(server: Server, argv: Sequence[str], state: Path, life: Life) -> None:
    stop = asyncio.Event()
    procedure = Procedure(
        action=Action(type=EventType.REBOOT, do="reboot", effect=Effect.RESTARTS),
        timeout=timedelta(seconds=30),
        on_doubt=OnDoubt.STOP,
    )
    equipped = Equipped(
        driver=MortalDriver(argv, state, life),
        procedures={EventType.REBOOT: procedure},
        limits=Limits(),
    )
    async with MortalDesk(server, life, stop) as desk:
        await Actuator("rack1", equipped, desk).run(stop)
