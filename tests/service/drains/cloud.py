"""A cloud with a host to drain: over a store in memory, and a clock that stands still."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from forewarned.actuators.simulated import Timing
from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, EventType, Resource
from forewarned.core.rules import Rules
from forewarned.core.tasks import ActuatorOf, Failure
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.drains.host_drains import HostDrains
from forewarned.service.drains.model import DrainOrder, DrainState, HostListing
from forewarned.service.drains.questions import Destinations, Question
from forewarned.service.drains.view import DrainView
from forewarned.service.lifecycle.tasks import Seen, TaskRef
from forewarned.service.listings import HistoryFilter
from forewarned.service.records import Caller, EventRecord
from forewarned.service.use_cases import UseCases
from tests.bases import a_basis, a_store
from tests.builders import MINUTE, NOON, OPERATOR, SECOND

A, B = HostName("hv-a"), HostName("hv-b")
WEB, API, DB0, DB1 = map(ResourceName, ("web", "api", "db-0", "db-1"))
SCOPES = {
    WEB: ScopeId("vm/web"),
    API: ScopeId("vm/api"),
    DB0: ScopeId("avset/db"),
    DB1: ScopeId("avset/db"),
}
FLEET = {
    "vms": [{"name": "web", "host": "hv-a"}, {"name": "api", "host": "hv-a"}],
    "availability_sets": [
        {
            "name": "db",
            "update_domains": 2,
            "vms": [{"name": "db-0", "host": "hv-a"}, {"name": "db-1", "host": "hv-b"}],
        }
    ],
}
RACK = Actor(name="rack1", address="10.9.9.9")
NO_ROOM = Failure(error="no room", unharmed=True, retry=False)
ANYWAY = DrainOrder(anyway=True)


def rack1(_: Resource) -> str:
    return "rack1"


def nobody(_: Resource) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    use_cases: UseCases
    clock: VirtualClock

    @property
    def drains(self) -> HostDrains:
        return self.use_cases.drains

    async def begin(self, order: DrainOrder = DrainOrder(), host: HostName = A) -> DrainView:  # noqa: B008  # frozen
        return await self.drains.begin(host, order, by=OPERATOR)

    async def show(self, host: HostName = A) -> DrainView:
        return await self.drains.show(host)

    async def state(self) -> DrainState:
        return (await self.show()).drain.state

    async def activate(self, *names: ResourceName) -> None:
        for name in names:
            caller = Caller(name=name, scope_id=SCOPES[name])
            await self.use_cases.activation.activate(caller, address="10.0.0.1")

    async def approve(self, view: DrainView, *names: ResourceName) -> None:
        for name in names:
            event_id = view.events[name].event.id
            await self.use_cases.approvals.approve_from_outside(event_id, by=OPERATOR)

    async def record(self, event_id: EventId) -> EventRecord:
        record = await self.use_cases.engine.ask(lambda snapshot: snapshot.event(event_id))
        assert record is not None
        return record

    async def host_of(self, name: ResourceName) -> HostName:
        scope = await self.use_cases.engine.ask(lambda snapshot: snapshot.load(SCOPES[name]))
        return scope.resources[name].host

    async def settle(self) -> None:
        """Let everything that is due happen."""
        await self.clock.step(SECOND)

    async def questions(self) -> list[Question]:
        return (await self.drains.questions("rack1"))[0]

    async def destinations(self) -> Destinations:
        """Whatever actuator asks."""
        return (await self.drains.questions("rack2"))[1]

    async def answer(self, *, possible: bool = True, reason: str = "") -> None:
        """As an actuator that can move every VM, or none."""
        for question in await self.questions():
            if question.vm is not None:
                await self.drains.answer_survey(
                    question.host,
                    question.vm,
                    possible=possible,
                    reason=reason,
                    target="hv-b",
                    by=RACK,
                )

    async def list_host(self, *names: str) -> None:
        [question] = await self.questions()
        assert question.vm is None
        await self.say_listed(HostListing(actuator="rack1", vms=names))

    async def say_listed(self, listing: HostListing) -> None:
        await self.drains.answer_listing(A, listing, by=RACK)

    async def carry_out(self, host: HostName = B) -> list[ResourceName]:
        """As an actuator, everything that has started."""
        begun = await self.claim()
        for ref in begun:
            await self.use_cases.tasks.finish(ref, Seen("{}", host), by=RACK)
        await self.settle()
        return [ref.vm for ref in begun]

    async def claim(self) -> list[TaskRef]:
        """Everything that has started, begun."""
        tasks, found = self.use_cases.tasks, []
        for claim in await tasks.claim("rack1", holder="one", limit=9):
            ref = TaskRef(claim.task.event_id, claim.task.vm, claim.task.attempt)
            await tasks.begin(ref, Seen(), by=RACK)
            found.append(ref)
        return found

    async def fail(self) -> None:
        for ref in await self.claim():
            await self.use_cases.tasks.fail(ref, NO_ROOM, Seen(), by=RACK)
        await self.settle()

    async def causes(self, event_id: EventId, action: str) -> list[str]:
        wanted = HistoryFilter(event_id=event_id, action=action)
        rows = await self.use_cases.engine.ask(lambda found: found.history(wanted))
        return [row.cause for row in rows]

    async def actions(self) -> list[str]:
        rows = await self.use_cases.engine.ask(lambda found: found.history(HistoryFilter()))
        return [row.action for row in rows[::-1] if row.action.startswith("drain")]


@asynccontextmanager
async def a_cloud(
    *, actuator_of: ActuatorOf, reading: Iterable[ResourceName] = SCOPES, is_emulator: bool = False
) -> AsyncIterator[Cloud]:
    clock = VirtualClock(NOON, speed=0)
    timings = {type_: Timing(impact=SECOND, span=MINUTE) for type_ in EventType}
    async with a_store(clock, actuator_of=actuator_of) as store:
        application = Application(
            store,
            clock,
            a_basis(Rules(short_notice_allowed=True)),
            BoardDelivery(),
            timings=timings if is_emulator else None,
        )
        async with application, clock:
            use_cases = application.use_cases
            await use_cases.fleet.apply(parse(FLEET), by=OPERATOR)
            cloud = Cloud(use_cases=use_cases, clock=clock)
            await cloud.activate(*reading)
            yield cloud
