"""VMs that run the real agent: its hooks fail, and it ends at any moment, also by its own reboot."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

from typing_extensions import override

from forewarned.agent.event_loop import EventLoop
from forewarned.agent.event_worker import WorkerContext
from forewarned.agent.hooks.ports import Call
from forewarned.agent.journal import AnyFact, Began, Journal, JournalError, advance
from forewarned.agent.model import HookOutcome, Phase, Plan, Progress, Step, Turn, Verdict
from forewarned.agent.service_clock import ServiceClock
from forewarned.agent.status.metrics import Counters
from forewarned.client import Change, Contact, Document, ScheduledEventsError, UnavailableError
from forewarned.client._changes import Knowledge, changes
from forewarned.client._wire import read_document
from forewarned.core.errors import RefusalError
from forewarned.core.ids import EventId, same_name
from tests.simulation import laws
from tests.simulation.actors.vms import SimulatedVm
from tests.simulation.moments import Moment
from tests.simulation.network import NoAnswerError
from tests.simulation.processes import Process, current
from tests.simulation.world import World
from tests.stateful.documents import NEWEST

_HOUR: Final = timedelta(hours=1)
_CLOCKS_DIFFER: Final = timedelta(minutes=10)
_ERRORS: Final = (0, 0, 0, -262, -20, 1, 20, 262)
"""Seconds by which a VM's own clock may be ahead."""
_PLAN: Final = Plan(
    rule="all",
    prepare=(
        Step(name="drain", timeout=timedelta(minutes=2), has_undo=True),
        Step(name="tell", timeout=timedelta(seconds=20), required=False),
    ),
    recover=(Step(name="check", timeout=timedelta(minutes=1)),),
)


class Disk(Journal):
    """A journal on a disk that outlives the agent: facts are there as soon as they are written."""

    def __init__(self, facts: list[AnyFact]) -> None:
        super().__init__(Path("journal"))
        self._facts = facts
        self._owner = current()

    @override
    def __enter__(self) -> Self:
        for fact in self._facts:
            self._progress[fact.event_id] = advance(self._progress.get(fact.event_id), fact)
        return self

    @override
    def write(self, fact: AnyFact) -> Progress:
        if self._owner is not None and self._owner.is_dead:
            raise JournalError("the agent is gone")
        progress = advance(self._progress.get(fact.event_id), fact)
        self._facts.append(fact)
        self._progress[fact.event_id] = progress
        return progress


class Runs:
    """Of all hooks of all agents, for I30."""

    def __init__(self) -> None:
        self.times: Counter[tuple[str, str, str, str]] = Counter()
        self.failed: set[tuple[str, str]] = set()


class FailingHook:
    def __init__(self, vm: "AgentVm") -> None:
        self._vm = vm

    async def run(self, call: Call) -> HookOutcome:
        return await self._run(call)

    async def undo(self, call: Call) -> HookOutcome:
        return await self._run(call)

    async def check(self) -> list[str]:
        return []

    def describe(self, phase: Phase) -> str:
        return f"{phase} something"

    async def _run(self, call: Call) -> HookOutcome:
        vm, world = self._vm, self._vm.world
        key = (vm.name, call.sighting.event_id, str(call.phase), call.step)
        vm.runs.times[key] += 1
        laws.i30_a_hook_runs_once({key: vm.runs.times[key]})
        if call.phase is Phase.UNDO:
            began = vm.has_begun(call.sighting.event_id, Turn(Phase.PREPARE, call.step))
            laws.i30_only_what_was_changed_is_put_back(key, was_changed=began)
        world.moments.has_come(Moment.HOOK, of=vm.name)
        await asyncio.sleep(world.chance.choice([0.1, 5, 100]) * world.chance.random())
        if world.weather.rarely(0.15):
            if call.phase is Phase.PREPARE and call.step == "drain":
                vm.runs.failed.add((vm.name, call.sighting.event_id))
            return HookOutcome(verdict=Verdict.FAILED, detail="no")
        return HookOutcome(verdict=Verdict.DONE)


class AgentVm(SimulatedVm):
    def __init__(self, name: str, world: World, runs: Runs) -> None:
        super().__init__(name, world)
        self.version = NEWEST
        self.runs = runs
        self._facts: list[AnyFact] = []

    @override
    async def run(self) -> None:
        world = self.world
        client = AgentClient(self)
        error = timedelta(seconds=world.chance.choice(_ERRORS))
        clock = ServiceClock(client.contact, own=lambda: world.true.now() + error)
        with Disk(self._facts) as journal:
            hook = FailingHook(self)
            context = WorkerContext(
                me=self.name,
                journal=journal,
                hooks={"drain": hook, "tell": hook, "check": hook},
                approve=self._approve,
                now=clock.now,
                monotonic=world.true.monotonic,
                counters=Counters(),
            )
            agent = EventLoop(
                client,
                context,
                plan_for=lambda _: _PLAN,
                poll=timedelta(seconds=1),
                boot=f"boot {self.boots}",
            )
            await agent.run()

    def restart_agent(self) -> None:
        """The agent is killed and started again; the VM goes on."""
        if self.is_up:
            self.world.story.tell(self.name, "its agent is killed")
            self.process.kill()
            self.process = Process(self.name)
            self.start()

    def has_begun(self, event_id: str, turn: Turn) -> bool:
        return any(
            isinstance(fact, Began) and fact.turn == turn and same_name(fact.event_id, event_id)
            for fact in self._facts
        )

    def check_put_back(self) -> None:
        """Once the agent has read that all events of its VM are over, and has had an hour."""
        world, read_at = self.world, self.read_at
        lives = world.ledger.oracle.lives.values()
        ends = [life.ended_at for life in lives if self.name in life.event.resources]
        # What another event needs prepared is not put back before that one is over.
        if not self.is_up or read_at is None or None in ends:
            return
        last = max(filter(None, [*ends, world.lost_at]), default=None)
        has_read = last is not None and last + _CLOCKS_DIFFER < read_at
        if not has_read or world.true.now() - read_at < _HOUR:
            return
        undo, drain = Turn(Phase.UNDO, "drain"), Turn(Phase.PREPARE, "drain")
        drained = [each for each in self._facts if isinstance(each, Began) and each.turn == drain]
        for fact in drained:
            laws.i30_what_was_changed_is_put_back(
                self.name, fact.event_id, is_put_back=self.has_begun(fact.event_id, undo)
            )

    async def _approve(self, event_id: str) -> None:
        laws.i30_no_approval_after_a_failed_hook(self.runs.failed, self.name, event_id)
        try:
            await self.approve(EventId(event_id))
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from error
        except RefusalError as error:
            raise ScheduledEventsError(str(error)) from error


class AgentClient:
    """As `AsyncScheduledEvents`, without HTTP; it polls when there may be something to read."""

    def __init__(self, vm: AgentVm) -> None:
        self._vm = vm
        self._at: datetime | None = None
        """The Date of the last document, by its node's clock."""
        self._read_at = timedelta(0)

    async def document(self) -> Document:
        shown = await self._vm.poll()
        if shown is None:
            raise UnavailableError("503")
        self._at = self._vm.node.clock.now().replace(microsecond=0)
        self._read_at = self._vm.world.true.monotonic()
        return read_document(shown.body, at=self._at)

    async def watch(
        self, *, poll: timedelta, only_mine: bool, since: Document
    ) -> AsyncGenerator[Change, None]:
        before = since
        while True:
            await self._vm.until_next_poll()
            try:
                after = await self.document()
            except UnavailableError:
                self._vm.try_again_later()
                continue
            for change in changes(before, after, Knowledge(resource=self._vm.name)):
                yield change
            before = after

    def contact(self) -> Contact:
        age = self._vm.world.true.monotonic() - self._read_at
        return Contact(
            endpoint="simulated",
            at=self._at,
            age=None if self._at is None else age,
            incarnation=None,
            wait=timedelta(0),
            trouble=None,
        )
