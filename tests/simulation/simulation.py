"""One simulation: a month in the life of a fleet, from a seed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from time import process_time
from typing import Final

from forewarned.core.ids import EventId
from forewarned.core.tasks import TaskState
from forewarned.core.transitions import Completed, Retried, Started
from forewarned.service.listings import TaskFilter
from forewarned.service.records import Commit
from tests.simulation import laws
from tests.simulation.actors.actuators import SimulatedActuator
from tests.simulation.actors.agents import AgentVm, Runs
from tests.simulation.actors.chaos import Chaos
from tests.simulation.actors.hypervisors import Hypervisors
from tests.simulation.actors.operators import Operators
from tests.simulation.actors.subscribers import Subscriber
from tests.simulation.actors.vms import SimulatedVm
from tests.simulation.loop import SimulatedLoop
from tests.simulation.moments import Moment
from tests.simulation.processes import make_task
from tests.simulation.story import KEPT
from tests.simulation.world import Complaints, World
from tests.stateful.fleet import VMS

DAYS: Final = 40
_DAY: Final = 86_400.0
_AMBUSH: Final = 1800.0
"""Seconds that a failure waits for its moment."""
_LOGGER: Final = "forewarned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    seed: int
    vm_days: float
    commits: int
    polls: int
    events: int
    seconds: float
    """Of the processor."""
    violation: str | None
    """None if all laws held."""
    story: tuple[str, ...]
    """The last of what happened."""


def simulate(seed: int, *, days: float = DAYS, kept: int | None = KEPT) -> Outcome:
    """`kept` is how many lines of the story to keep; None for all."""
    began = process_time()
    loop = SimulatedLoop()
    loop.set_task_factory(make_task)  # type: ignore[arg-type]  # its type has no context yet
    asyncio.set_event_loop(loop)
    try:
        world = World(seed, loop, kept=kept)
        with _complaints(world):
            loop.run_until_complete(_Month(world, days).run())
            for context in loop.failures:
                if "exception" in context:
                    world.violated(context["exception"])
            outcome = world.violation
            loop.run_until_complete(_end(world))
        # What was cut short in the middle may complain about that.
        world.violation = outcome
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return Outcome(
        seed=seed,
        vm_days=world.vm_days,
        commits=world.ledger.commits,
        polls=world.polls,
        events=len(world.ledger.oracle.lives),
        seconds=process_time() - began,
        violation=world.violation,
        story=tuple(world.story.lines()),
    )


async def _end(world: World) -> None:
    """All of it at once, as when the lights go out."""
    for node in world.nodes:
        node.kill()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.wait(others, timeout=60)


class _Month:
    def __init__(self, world: World, days: float) -> None:
        self._world = world
        self._days = days
        self._operators = Operators(world)
        self._chaos = Chaos(world)
        self._runs = Runs()
        self._vms = {name: self._vm(name) for name in VMS}
        self._platform = Hypervisors(world, self._vms)
        self._actuators = [
            SimulatedActuator(holder, world, self._platform) for holder in ("one", "two")
        ]
        self._subscriber = Subscriber(world)
        self._subscribes = world.chance.random() < 0.3
        if self._subscribes:
            # Where nobody subscribes, all that a publisher does is to look, hour after hour.
            world.opened.append(self._subscriber.open)
        world.listen(self._nudge)
        world.listen(self._follow)

    def _vm(self, name: str) -> SimulatedVm:
        world = self._world
        if world.chance.random() < 0.5:
            return AgentVm(name, world, self._runs)
        return SimulatedVm(name, world)

    async def run(self) -> None:
        """Ends early where a law is broken."""
        living = asyncio.create_task(self._world.watched(self._live))
        broken = asyncio.create_task(self._world.is_broken.wait())
        await asyncio.wait([living, broken], return_when=asyncio.FIRST_COMPLETED)
        living.cancel()
        broken.cancel()

    async def _live(self) -> None:
        world = self._world
        for node in world.nodes:
            node.start()
        await asyncio.sleep(1)
        await self._operators.found()
        for vm in self._vms.values():
            vm.nudged.set()
            vm.start()
        for actuator in self._actuators:
            actuator.start()
        if self._subscribes:
            await self._subscriber.subscribe()
        end = world.loop.time() + self._days * _DAY
        while world.loop.time() < end:
            world.weather.is_still = True
            quiet = timedelta(days=world.chance.uniform(0.5, 9))
            await asyncio.sleep(quiet.total_seconds())
            world.check()
            self._check_calm(quiet)
            world.weather.is_still = False
            await self._burst()

    def _check_calm(self, quiet: timedelta) -> None:
        """What all have had the time for, since the last failure."""
        world = self._world
        self._subscriber.check_calm()
        for vm in self._vms.values():
            if isinstance(vm, AgentVm):
                vm.check_put_back()
        if quiet > laws.CARRIED_OUT_WITHIN:
            tasks = world.server.snapshot().tasks(TaskFilter(limit=1000))
            laws.i22_what_has_started_is_carried_out(world.ledger.oracle, tasks, world.server.now())

    async def _burst(self) -> None:
        """Some minutes in which much happens at once, and the hour after it."""
        world, chance = self._world, self._world.chance
        world.weather.is_rough = chance.random() < 0.8
        world.story.tell("world", f"a {'rough' if world.weather.is_rough else 'fair'} day begins")
        span = chance.choice([20, 300, 1200])
        actions = [self._operators.act for _ in range(chance.randint(1, 4))]
        failures = [self._break for _ in range(chance.choice([0, 1, 1, 2, 3]))]
        async with asyncio.TaskGroup() as together:
            for act in (*actions, *failures):
                delay = chance.uniform(0, span)
                together.create_task(world.watched(partial(self._after, delay, act)))
        for _ in range(chance.randint(2, 4)):
            await asyncio.sleep(chance.uniform(60, 1200))
            world.check()
            await self._operators.settle()
        world.weather.is_rough = False
        await asyncio.sleep(60)
        world.check()
        self._subscriber.check()

    async def _break(self) -> None:
        chance = self._world.chance
        if chance.random() < 0.6:
            await self._until_it_hurts(Moment.APPROVAL, Moment.START)
            await self._chaos.strike()
            return
        if chance.random() < 0.5:
            acting = await self._until_it_hurts(Moment.ACTION)
            found = [each for each in self._actuators if each.holder == acting]
            actuator = chance.choice(found or self._actuators)
            await asyncio.sleep(chance.choice([0.01, 1, 20]) * chance.random())
            actuator.kill()
            await asyncio.sleep(chance.choice([1, 60]) * chance.random())
            actuator.start()
            return
        running = await self._until_it_hurts(Moment.HOOK)
        vm = self._vms[running or chance.choice(list(self._vms))]
        await asyncio.sleep(chance.choice([0, 1, 20]) * chance.random())
        if isinstance(vm, AgentVm) and chance.random() < 0.5:
            vm.restart_agent()
        else:
            vm.crash()

    async def _until_it_hurts(self, *moments: Moment) -> str | None:
        """Whose moment it is; None where the failure comes at any time, as half of them do."""
        chance = self._world.chance
        if chance.random() < 0.5:
            return None
        return await self._world.moments.next(chance.choice(moments), within=_AMBUSH)

    def _follow(self, commit: Commit) -> None:
        for fact in commit.transitions:
            if isinstance(fact, Started | Retried):
                for actuator in self._actuators:
                    actuator.nudged.set()
            elif isinstance(fact, Completed):
                self._check_completed(fact.event.id)
        for name in commit.unbound:
            self._platform.remove(name)
        for binding in commit.bound:
            self._platform.make(binding.name)

    def _check_completed(self, event_id: EventId) -> None:
        if event_id not in self._world.completed_by_hand:
            tasks = self._world.server.snapshot().tasks_of([event_id])
            # What is to be stopped or removed, and is so already, is done.
            done = [
                f"{event_id}/{task.vm}"
                for task in tasks
                if task.state is TaskState.DONE and self._platform.is_running(task.vm)
            ]
            laws.i22_what_is_done_was_carried_out(self._platform.actions, done)

    @staticmethod
    async def _after(delay: float, act: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(delay)
        await act()

    def _nudge(self, commit: Commit) -> None:
        changed = {page.scope_id for page in commit.shown}
        for vm in self._vms.values():
            if vm.scope_id in changed:
                vm.nudged.set()


@contextmanager
def _complaints(world: World) -> Iterator[None]:
    logger = logging.getLogger(_LOGGER)
    before, propagates = logger.level, logger.propagate
    handler = Complaints(world.violated)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = propagates
