"""Actuators: the real ones, with a desk that asks any node, and processes that end at any moment."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec

from forewarned.actuators.actuator import Actuator, Equipped
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.desk import Assignment, DeskUnavailableError, Destination, TaskRef
from forewarned.actuators.driver import Action, Effect, Sighting, Vm
from forewarned.actuators.slots import Limits
from forewarned.core.errors import RefusalError, TaskLostError
from forewarned.core.ids import HostName
from forewarned.core.model import Actor, EventType
from forewarned.core.tasks import Failure, TaskState
from forewarned.service.lifecycle import tasks
from forewarned.service.lifecycle.tasks import Claim, Seen
from forewarned.service.use_cases import UseCases
from tests.simulation.actors.hypervisors import FailingDriver, Hypervisors
from tests.simulation.network import NoAnswerError
from tests.simulation.processes import Process
from tests.simulation.world import World

NAME: Final = "rack1"
_BY: Final = Actor(name=f"actuator:{NAME}")
_LONGEST: Final = 12 * 3600.0
"""Seconds between two claims."""
_EFFECTS: Final = {
    EventType.FREEZE: Effect.HOLDS,
    EventType.REBOOT: Effect.RESTARTS,
    EventType.REDEPLOY: Effect.MOVES,
    EventType.PREEMPT: Effect.STOPS,
    EventType.TERMINATE: Effect.REMOVES,
}
_PROCEDURES: Final = {
    type_: Procedure(
        action=Action(type=type_, do=str(effect), effect=effect),
        timeout=timedelta(minutes=10),
        retries=2,
        on_doubt=OnDoubt.STOP,
    )
    for type_, effect in _EFFECTS.items()
}


class SimulatedActuator:
    """One process. What it knows is gone when it is killed."""

    def __init__(self, holder: str, world: World, platform: Hypervisors) -> None:
        self.holder = holder
        self.nudged = asyncio.Event()
        self._world = world
        self._platform = platform
        self._process: Process | None = None
        """None while it is not there."""

    def start(self) -> None:
        """Does nothing if it is: what has killed it twice starts it twice."""
        world = self._world
        if self._process is not None:
            return
        self._process = Process(self.holder)
        equipped = Equipped(
            driver=FailingDriver(self._platform, world, holder=self.holder),
            procedures=_PROCEDURES,
            limits=Limits(),
        )
        desk = NetworkDesk(self, world)
        # Made inside its process: what it waits with belongs there.
        self._process.spawn(world.watched(partial(self._run, equipped, desk)))

    async def _run(self, equipped: Equipped, desk: "NetworkDesk") -> None:
        actuator = Actuator(NAME, equipped, desk, clock=self._world.true.monotonic)
        await actuator.run(asyncio.Event())

    def kill(self) -> None:
        self._world.story.tell(self.holder, "is killed")
        if self._process is not None:
            self._process.kill()
            self._process = None


class NetworkDesk:
    """As `actuators.http_desk`, without HTTP."""

    def __init__(self, actuator: SimulatedActuator, world: World) -> None:
        self._actuator = actuator
        self._world = world
        self._in_vain = 0
        """Claims since something last happened that got nothing."""

    async def claim(self, *, limit: int, patience: timedelta) -> list[Assignment]:
        """Waits for hours where the real one asks again and again."""
        await self._until_worthwhile()
        try:
            claims = await self._ask(
                lambda app: app.tasks.claim(NAME, holder=self._actuator.holder, limit=limit)
            )
        except RefusalError as error:
            raise DeskUnavailableError(str(error)) from error
        self._in_vain += 1
        if claims:
            # There may be more, or their leases may run out.
            self._actuator.nudged.set()
        return [_assignment(claim) for claim in claims]

    async def _until_worthwhile(self) -> None:
        chance = self._world.chance
        is_busy = bool(self._world.ledger.oracle.under_way())
        # An event may be under way for days, until its VM is back.
        pause = chance.uniform(20, 40) * 2 ** max(self._in_vain - 10, 0)
        try:
            async with asyncio.timeout(min(pause, _LONGEST) if is_busy else _LONGEST):
                await self._actuator.nudged.wait()
        except TimeoutError:
            return
        self._in_vain = 0
        self._actuator.nudged.clear()
        await asyncio.sleep(chance.uniform(0, 2))

    async def destination(self, task: TaskRef) -> Destination:
        return Destination()

    async def renew(self, task: TaskRef, progress: str = "") -> None:
        await self._report(task, lambda app, ref: app.tasks.renew(ref))

    async def begin(self, task: TaskRef, before: Sighting) -> None:
        await self._report(task, lambda app, ref: app.tasks.begin(ref, _seen(before), by=_BY))

    async def finish(self, task: TaskRef, after: Sighting) -> None:
        await self._report(task, lambda app, ref: app.tasks.finish(ref, _seen(after), by=_BY))

    async def fail(
        self, task: TaskRef, error: str, *, unharmed: bool, after: Sighting | None
    ) -> None:
        failure = Failure(error=error, unharmed=unharmed, retry=False)
        seen = Seen() if after is None else _seen(after)
        await self._report(task, lambda app, ref: app.tasks.fail(ref, failure, seen, by=_BY))

    async def _report(
        self,
        task: TaskRef,
        report: Callable[[UseCases, tasks.TaskRef], Coroutine[Any, Any, object]],
    ) -> None:
        ref = tasks.TaskRef(task.event_id, task.vm, task.attempt)
        try:
            await self._ask(lambda app: report(app, ref))
        except TaskLostError:
            raise
        except RefusalError as error:
            raise TaskLostError(task.key, task.attempt) from error

    async def _ask(
        self, ask: Callable[[UseCases], Coroutine[Any, Any, Any]]
    ) -> Any:  # as it is answered
        node = self._world.network.any_node()
        try:
            return await self._world.network.ask(
                node,
                lambda: ask(node.use_cases),
                copied=lambda: self._world.story.tell(
                    self._actuator.holder, f"what it asks {node.name} for is sent twice"
                ),
            )
        except NoAnswerError as error:
            raise DeskUnavailableError(str(error)) from error


def _seen(sighting: Sighting) -> Seen:
    host = None if sighting.host is None else HostName(sighting.host)
    return Seen(msgspec.json.encode(sighting).decode(), host)


def _assignment(claim: Claim) -> Assignment:
    task = claim.task
    before = msgspec.json.decode(task.before, type=Sighting) if task.before else None
    return Assignment(
        ref=TaskRef(event_id=task.event_id, vm=task.vm, attempt=task.attempt),
        type=task.type,
        vm=Vm(name=task.vm, vm_id=claim.vm_id, host=claim.host),
        duration=claim.duration,
        before=before,
        begun=task.state is TaskState.BEGUN,
    )
