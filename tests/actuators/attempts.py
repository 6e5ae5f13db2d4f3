"""Attempts at a task on a platform in memory, in time that passes at once."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any, Protocol

from forewarned.actuators.attempt import Attempt, Equipment
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.driver import Action, Effect, Power
from forewarned.actuators.slots import Limits, Slots
from forewarned.core.tasks import LEASE
from tests.actuators.desks import Kept, MemoryDesk
from tests.actuators.platforms import Happening, KilledError, Platform, PlatformDriver
from tests.actuators.test_decision import TYPES
from tests.actuators.times import QuickTime

TIMEOUT = timedelta(minutes=10)


class Life:
    """How far a process comes before it is killed."""

    def __init__(self, steps: int | None = None) -> None:
        self._left = steps
        self.steps: list[str] = []

    def step(self, name: str) -> None:
        if self._left is not None:
            if not self._left:
                raise KilledError
            self._left -= 1
        self.steps.append(name)


class Time(Protocol):
    def monotonic(self) -> timedelta: ...

    async def sleep(self, span: timedelta) -> None: ...


MakeDriver = Callable[..., PlatformDriver]


@dataclass(kw_only=True)
class World:
    time: Any  # a Time; tests that move it know which
    platform: Platform
    desk: MemoryDesk
    slots: Slots | None = None
    """None where each attempt is that of another actuator."""
    driver: MakeDriver = PlatformDriver

    async def claimed(
        self,
        procedure: Procedure | None,
        *,
        life: Life | None = None,
        dry_run: bool = False,
        **happenings: Happening,
    ) -> Attempt:
        """An attempt at the task, which has not begun to run."""
        life = life or Life()
        self.desk.step = life.step
        (assignment,) = await self.desk.claim(limit=1, patience=timedelta(0))
        equipment = Equipment(
            desk=self.desk,
            driver=self.driver(self.platform, life.step, **happenings),
            slots=self.slots or Slots(Limits()),
            dry_run=dry_run,
            monotonic=self.time.monotonic,
            sleep=self.time.sleep,
        )
        return Attempt(assignment, procedure, equipment)

    async def attempt(
        self, procedure: Procedure | None, *, life: Life | None = None, **more: Any
    ) -> Life:
        """Claim the task, and carry it out; as far as it comes."""
        life = life or Life()
        await (await self.claimed(procedure, life=life, **more)).run()
        return life

    def let_the_lease_end(self) -> None:
        self.time.stand_still_for(LEASE)


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    async with QuickTime() as time:
        yield world_in(time)


def world_in(time: Time) -> World:
    desk = MemoryDesk(monotonic=time.monotonic)
    return World(time=time, platform=Platform(), desk=desk)


def a_procedure(
    effect: Effect = Effect.MOVES,
    *,
    on_doubt: OnDoubt = OnDoubt.STOP,
    retries: int = 0,
    timeout: timedelta = TIMEOUT,
) -> Procedure:
    action = Action(type=TYPES[effect], do="it", effect=effect)
    return Procedure(action=action, timeout=timeout, retries=retries, on_doubt=on_doubt)


def a_task(world: World, effect: Effect = Effect.MOVES) -> Kept:
    return world.desk.put(TYPES[effect])


def comes_up(world: World) -> Happening:
    """A VM that is off, and is up when it is looked at for the fourth time."""
    world.platform.power = Power.OFF
    looks = count()

    async def look() -> None:
        if next(looks) == 3:
            world.platform.power = Power.RUNNING

    return look


def in_turn(*turns: Exception | None) -> Happening:
    """Fails as it is told, and goes on as usual afterwards."""
    rest = iter(turns)

    async def happen() -> None:
        if (error := next(rest, None)) is not None:
            raise error

    return happen
