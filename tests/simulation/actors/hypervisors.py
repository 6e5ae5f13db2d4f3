"""The platform that the VMs run on, and a driver that fails as platforms do.

What was done to a VM stays done, whatever became of the actuator that did it. Each action that had
an effect is counted (I22).
"""

from collections import Counter
from dataclasses import dataclass
from typing import assert_never

from forewarned.actuators.driver import (
    Action,
    DriverError,
    Effect,
    Power,
    Progress,
    RefusedError,
    Sighting,
    TryLaterError,
    Verdict,
    Vm,
)
from forewarned.core.ids import EventId
from tests.simulation import laws
from tests.simulation.actors.vms import SimulatedVm
from tests.simulation.moments import Moment
from tests.simulation.world import World
from tests.stateful.fleet import VMS


@dataclass(slots=True)
class Machine:
    host: str
    power: Power = Power.RUNNING
    boots: int = 1
    intent: str = ""
    issued: bool = False
    job: str = ""
    """What is being done to it; empty for nothing."""


class Hypervisors:
    def __init__(self, world: World, guests: dict[str, SimulatedVm]) -> None:
        self.machines = {name: Machine(vm.host) for name, vm in VMS.items()}
        self.actions: Counter[str] = Counter()
        self._excused: Counter[str] = Counter()
        """Actions of which neither the server nor the platform knew when they were begun again."""
        self._world = world
        self._guests = guests

    def make(self, name: str) -> None:
        """A VM of this name is in the fleet, where there was none."""
        machine = self.machines[name]
        if machine.power is not Power.RUNNING:
            self.machines[name] = Machine(VMS[name].host, boots=machine.boots + 1)
            self._guests[name].restart(self._world.chance.uniform(5, 60))

    def is_running(self, name: str) -> bool:
        return self.machines[name].power is Power.RUNNING

    def remove(self, name: str) -> None:
        """It is no longer in the fleet."""
        self.machines[name].power = Power.GONE
        self._guests[name].halt()

    def mark(self, name: str, key: str) -> None:
        """A VM has one mark: with the last one goes what only the platform knew of its task."""
        machine = self.machines[name]
        if machine.intent != key and self._is_forgotten(key):
            self._excused[key] = self.actions[key]
        machine.intent, machine.issued = key, False

    def _is_forgotten(self, key: str) -> bool:
        """Whether a failover has lost that the task had begun: what is marked is begun later."""
        event_id, _, name = key.partition("/")
        if self._world.lost_at is None or not self.actions[key]:
            return False
        tasks = self._world.server.snapshot().tasks_of([EventId(event_id)])
        return all(task.begun_at is None for task in tasks if task.vm == name)

    async def work(self, effect: Effect, name: str, key: str) -> None:
        """The platform goes on with it, whatever becomes of the actuator that has asked for it."""
        chance = self._world.chance
        machine = self.machines[name]
        machine.job = key
        done = self._world.loop.create_future()

        def end() -> None:
            machine.job = ""
            try:
                self._carry_out(effect, name, key)
            except AssertionError as broken:
                self._world.violated(broken)
            if not done.done():
                done.set_result(None)

        self._world.later(chance.choice([0.1, 5, 60]) * chance.random(), end)
        await done

    def _carry_out(self, effect: Effect, name: str, key: str) -> None:
        self.actions[key] += 1
        again = self._world.orders[key] + self._excused[key]
        laws.i22_an_action_is_carried_out_once(self.actions, key, again=again)
        self._world.story.tell(name, f"{effect} for {key[:8]}")
        machine, guest = self.machines[name], self._guests[name]
        match effect:
            case Effect.MOVES:
                spare = [f"spare-{number}" for number in (1, 2, 3)]
                machine.host = self._world.chance.choice([h for h in spare if h != machine.host])
                machine.boots += 1
                guest.restart(self._world.chance.uniform(5, 90))
            case Effect.RESTARTS:
                machine.boots += 1
                guest.restart(self._world.chance.uniform(5, 90))
            case Effect.HOLDS:
                pass
            case Effect.STOPS:
                machine.power = Power.OFF
                guest.halt()
            case Effect.REMOVES:
                machine.power = Power.GONE
                guest.halt()
            case other:
                assert_never(other)


class FailingDriver:
    """Of one actuator process."""

    def __init__(self, platform: Hypervisors, world: World, *, holder: str) -> None:
        """`holder` is the process."""
        self._platform = platform
        self._world = world
        self._holder = holder

    async def survey(self, action: Action, vm: Vm) -> Verdict:
        await self._trip()
        if self._world.weather.rarely(0.05):
            return Verdict(possible=False, reason="no host has room")
        return Verdict(possible=True, reason=action.do)

    async def observe(self, vm: Vm) -> Sighting:
        await self._trip()
        if self._world.weather.rarely(0.05):
            raise DriverError("the host does not answer")
        machine = self._platform.machines[vm.name]
        return Sighting(
            host=machine.host,
            power=machine.power,
            witness=f"boot {machine.boots}",
            conclusive=True,
            intent=machine.intent,
            issued=machine.issued,
            job=machine.job,
        )

    async def mark(self, vm: Vm, key: str) -> None:
        self._world.moments.has_come(Moment.ACTION, of=self._holder)
        await self._trip()
        self._platform.mark(vm.name, key)

    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        chance, weather = self._world.chance, self._world.weather
        progress("half of it is done")
        await self._trip()
        if weather.rarely(0.08):
            raise chance.choice([RefusedError, TryLaterError, DriverError])("not now")
        await self._platform.work(action.effect, vm.name, key)
        # A process may end between the two.
        await self._trip()
        machine = self._platform.machines[vm.name]
        machine.issued = machine.intent == key
        if weather.rarely(0.05):
            raise DriverError("the connection broke")

    async def abort(self, vm: Vm, key: str) -> None:
        await self._trip()

    async def _trip(self) -> None:
        await self._world.weather.trip()
