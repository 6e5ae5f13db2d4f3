"""What the server keeps of agents' readiness, for how long, and for whom."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest
from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.core.errors import UnknownEventError, UnknownResourceError, UnknownScopeError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import EventSource, EventType
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.engine import Engine
from forewarned.service.events.schedule import EventOrder
from forewarned.service.fleet.declaration import AvailabilitySet, FleetPlan, Member, VirtualMachine
from forewarned.service.memory_readiness import MemoryReadiness
from forewarned.service.ports import Snapshot, Store
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import Caller
from tests.bases import a_basis, a_store
from tests.builders import MINUTE, NOON, OPERATOR, A

T = TypeVar("T")
Said = tuple[ReadinessReport, ...]


def a_fleet(*members: str) -> FleetPlan:
    """A VM, and an availability set of the others."""
    names = tuple(Member(name=ResourceName(name)) for name in members)
    return FleetPlan(
        vms=(VirtualMachine(name=ResourceName("vm3")),),
        availability_sets=(AvailabilitySet(name="db", update_domains=1, members=names),),
    )


class SlowDecider(Engine):
    """Answers questions at once, and gives the answers when told to."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.asked = asyncio.Event()
        self.gate: asyncio.Event | None = None

    @override
    async def ask(self, question: Callable[[Snapshot], T]) -> T:
        answer = await super().ask(question)
        if self.gate is not None:
            self.asked.set()
            await self.gate.wait()
        return answer


class Site:
    """An availability set of two VMs and a VM beside it, and a real time that tests move."""

    def __init__(self) -> None:
        clock = VirtualClock(NOON, speed=0)
        self.store = a_store(clock)
        self.application = Application(self.store, clock, a_basis(), BoardDelivery())
        self.use_cases = self.application.use_cases
        self.engine = SlowDecider(self.store)
        self.real_time = NOON
        self.readiness = MemoryReadiness(self.engine, now=lambda: self.real_time)
        self.use_cases.engine.tell(self.readiness.hear)

    async def caller(self, name: str) -> Caller:
        binding = await self.use_cases.engine.ask(lambda snapshot: snapshot.binding(name))
        assert binding is not None
        return Caller(name=binding.name, scope_id=binding.scope_id)

    async def schedule(self, *names: str) -> EventId:
        resources = tuple(map(ResourceName, names))
        order = EventOrder(type=EventType.REBOOT, resources=resources, source=EventSource.PLATFORM)
        [record] = await self.use_cases.scheduler.schedule(order, by=OPERATOR)
        return record.event.id

    async def report(self, event: EventId, name: str, standing: Standing = Standing.READY) -> Said:
        return await self.readiness.report(event, standing, caller=await self.caller(name))

    async def reports(self, event: EventId, name: str = "vm1") -> Said:
        return await self.readiness.reports(event, caller=await self.caller(name))


@pytest.fixture
async def site(anyio_backend: object) -> AsyncIterator[Site]:
    made = Site()
    async with made.store, made.application:
        await made.use_cases.fleet.apply(a_fleet("vm1", "vm2"), by=OPERATOR)
        for name in ("vm1", "vm3"):
            await made.use_cases.activation.activate(await made.caller(name), address="")
        yield made


async def test_all_of_the_scope_hear_who_has_said_what_and_when(site: Site) -> None:
    event = await site.schedule("vm1", "vm2")

    await site.report(event, "vm2", Standing.PREPARING)
    site.real_time += MINUTE
    said = await site.report(event, "vm1", Standing.REFUSES)

    assert said == (
        ReadinessReport(
            resource=ResourceName("vm1"), standing=Standing.REFUSES, heard_at=NOON + MINUTE
        ),
        ReadinessReport(resource=ResourceName("vm2"), standing=Standing.PREPARING, heard_at=NOON),
    )
    assert await site.reports(event, "vm2") == said


async def test_a_beat_moves_the_instant_though_the_servers_clock_stands(site: Site) -> None:
    event = await site.schedule("vm1")
    await site.report(event, "vm1")

    site.real_time += MINUTE
    [report] = await site.report(event, "vm1")

    assert report.heard_at == NOON + MINUTE


async def test_events_of_others_and_events_that_never_were_are_unknown(site: Site) -> None:
    """I12"""
    event = await site.schedule("vm1")
    await site.report(event, "vm1")

    for each in (event, A):
        with pytest.raises(UnknownEventError):
            await site.report(each, "vm3")
        with pytest.raises(UnknownEventError):
            await site.reports(each, "vm3")
    assert site.readiness.events == 1


async def test_a_vm_or_scope_that_is_gone_says_nothing(site: Site) -> None:
    event = await site.schedule("vm1")
    known = await site.caller("vm1")
    gone = known._replace(name=ResourceName("gone"))
    lost = known._replace(scope_id=ScopeId("nowhere"))

    with pytest.raises(UnknownResourceError):
        await site.readiness.report(event, Standing.READY, caller=gone)
    with pytest.raises(UnknownScopeError):
        await site.readiness.report(event, Standing.READY, caller=lost)
    assert site.readiness.events == 0


async def test_an_event_that_has_started_is_still_heard_of_and_one_that_is_over_is_forgotten(
    site: Site,
) -> None:
    event = await site.schedule("vm1")
    other = await site.schedule("vm2")
    await site.report(other, "vm2")
    await site.report(event, "vm1")

    await site.use_cases.approvals.approve_from_outside(event, by=OPERATOR)
    assert len(await site.reports(event)) == 1
    await site.use_cases.actuation.complete_by_hand(event, by=OPERATOR)

    with pytest.raises(UnknownEventError):
        await site.reports(event)
    assert site.readiness.events == 1
    assert len(await site.reports(other)) == 1


async def test_a_vm_that_is_removed_takes_its_word_with_it(site: Site) -> None:
    event = await site.schedule("vm1", "vm2")
    await site.report(event, "vm1")
    await site.report(event, "vm2")

    await site.use_cases.fleet.apply(a_fleet("vm1"), by=OPERATOR, prune=True)

    assert [each.resource for each in await site.reports(event)] == ["vm1"]


async def test_nothing_stays_of_an_event_that_ends_while_a_report_is_looked_into(
    site: Site,
) -> None:
    event = await site.schedule("vm1")
    site.engine.gate = asyncio.Event()
    saying = asyncio.create_task(site.report(event, "vm1"))
    await site.engine.asked.wait()
    await site.use_cases.scheduler.cancel(event, reason="", by=OPERATOR)

    site.engine.gate.set()

    with pytest.raises(UnknownEventError):
        await saying
    assert site.readiness.events == 0


async def test_whoever_gives_up_asking_leaves_what_others_have_said(site: Site) -> None:
    event = await site.schedule("vm1", "vm2")
    await site.report(event, "vm2")
    site.engine.gate = asyncio.Event()
    saying = asyncio.create_task(site.report(event, "vm1"))
    await site.engine.asked.wait()

    saying.cancel()
    await asyncio.wait([saying])

    site.engine.gate = None
    assert [each.resource for each in await site.reports(event)] == ["vm2"]
