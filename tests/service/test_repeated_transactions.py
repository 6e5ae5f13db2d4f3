"""A lost race is run again: every transaction function gives the same result a second time."""

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from forewarned.actuators.simulated import Timing
from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import EventSource, EventStatus, EventType, Resource
from forewarned.core.rules import Rules
from forewarned.core.tasks import Failure
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.drains.host_drains import HostDrains
from forewarned.service.drains.model import DrainOrder, HostListing
from forewarned.service.events.schedule import EventOrder, WorkOrder
from forewarned.service.faults import Faults
from forewarned.service.fleet.apply import Fleet
from forewarned.service.fleet.reset import Reset
from forewarned.service.history.keeper import HistoryKeeper
from forewarned.service.lifecycle.tasks import Seen, TaskRef, Tasks
from forewarned.service.listings import EventFilter
from forewarned.service.ports import Snapshot, Store
from forewarned.service.records import Caller, EventRecord, Stage, StageReport
from forewarned.service.sources.intake import SourceReport, Sources
from forewarned.service.sources.listing import ListedVm, Listing
from forewarned.service.subscriptions.earlier_policies import take_over_policies
from forewarned.service.subscriptions.model import Filter
from forewarned.service.subscriptions.subscriptions import Declared, Subscriptions
from forewarned.service.subscriptions.targets import Webhook
from tests.bases import a_basis, a_store
from tests.builders import DAY, HOUR, MINUTE, NOON, OPERATOR
from tests.control.control_api import FLEET
from tests.racing import callers_in, contents, outcome_of_lost_races
from tests.touching import TouchingStore

T = TypeVar("T")
NETWORK = ipaddress.ip_network("10.1.0.0/24")
RULES = Rules(short_notice_allowed=True)
WEB, DB, API = ResourceName("web"), ResourceName("db-0"), ResourceName("api_0")


class World:
    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.clock = clock
        timings = {type_: Timing(impact=MINUTE, span=10 * MINUTE) for type_ in EventType}
        basis = a_basis(RULES, address_range=NETWORK)
        self.application = Application(store, clock, basis, BoardDelivery(), timings=timings)
        use_cases = self.use_cases = self.application.use_cases
        self.unsimulated = Application(store, clock, basis, BoardDelivery()).use_cases
        """Over the same store: what starts here has to be carried out by others."""
        self.fleet = Fleet(use_cases.engine, use_cases.activation, NETWORK, large=2)
        self.reset = Reset(
            engine=use_cases.engine,
            activation=use_cases.activation,
            clock_control=use_cases.clock_control,
            faults=Faults(),
            address_range=NETWORK,
            plan=parse(FLEET),
        )

    async def caller(self, name: ResourceName) -> Caller:
        def find(snapshot: Snapshot) -> ScopeId:
            binding = snapshot.binding(name)
            assert binding is not None
            return binding.scope_id

        return Caller(name=name, scope_id=await self.use_cases.engine.ask(find))

    async def event(self, type_: EventType) -> EventRecord:
        """The newest that is open."""
        wanted = EventFilter(
            type=type_, statuses=frozenset({EventStatus.SCHEDULED, EventStatus.STARTED})
        )
        return (await self.use_cases.engine.ask(lambda snapshot: snapshot.events(wanted)))[-1]


async def every_kind_of_decision(world: World) -> AsyncIterator[object]:
    """One after the other, each with its result."""
    use_cases = world.use_cases
    schedule, approvals = use_cases.scheduler, use_cases.approvals

    def order(type_: EventType, *names: str) -> EventOrder:
        resources = tuple(map(ResourceName, names))
        return EventOrder(type=type_, resources=resources, source=EventSource.PLATFORM)

    yield await use_cases.fleet.apply_once(parse(FLEET), by=OPERATOR)
    yield await world.fleet.apply_once(
        parse({**FLEET, "vms": [{"name": f"more-{n}"} for n in range(4)]}), by=OPERATOR
    )
    for name in (WEB, DB, API):
        caller = await world.caller(name)
        await use_cases.activation.activate(caller, address="10.0.0.1")
    yield await schedule.schedule(order(EventType.REBOOT, "web", "db-0", "db-2"), by=OPERATOR)
    yield await schedule.schedule(order(EventType.TERMINATE, "api_0", "api_1"), by=OPERATOR)
    event = (await world.event(EventType.TERMINATE)).event.id
    yield await schedule.cancel(event, reason="not now", by=OPERATOR)
    event = (await world.event(EventType.REBOOT)).event.id
    await approvals.approve([event], caller=await world.caller(DB), address="10.0.0.9")
    work = WorkOrder(type=EventType.FREEZE)
    yield await schedule.maintain_host(HostName("rack1"), work, by=OPERATOR)
    event = (await world.event(EventType.FREEZE)).event.id
    yield await schedule.cancel(event, reason="nor then", by=OPERATOR)
    yield await schedule.maintain_host(HostName("rack1"), work, by=OPERATOR)
    event = (await world.event(EventType.FREEZE)).event.id
    await approvals.approve_from_outside(event, by=OPERATOR)
    await world.clock.step(HOUR)
    yield await schedule.maintain_set(ScopeId("avset/db"), work, by=OPERATOR)
    yield await schedule.fail_host(HostName("rack1"), by=OPERATOR)
    yield await schedule.predict_failure(HostName("rack2"), by=OPERATOR)
    await world.clock.step(HOUR)
    [started] = await schedule.schedule(order(EventType.REDEPLOY, "api_1"), by=OPERATOR)
    await approvals.approve_from_outside(started.event.id, by=OPERATOR)
    impact = StageReport(Stage.INTERRUPTED, started.scope_id, started.event.id)
    await use_cases.actuation.report(impact, impact)
    yield await use_cases.actuation.complete_by_hand(started.event.id, by=OPERATOR)
    others = world.unsimulated
    [moving] = await others.scheduler.schedule(order(EventType.FREEZE, "report"), by=OPERATOR)
    await others.approvals.approve_from_outside(moving.event.id, by=OPERATOR)
    async for result in every_word_on_a_task(others.tasks, moving.event.id):
        yield result
    async for result in every_word_on_a_drain(use_cases.drains):
        yield result
    async for result in every_word_on_a_source(use_cases.sources, world.clock):
        yield result
    await take_over_policies(use_cases.engine, by=OPERATOR)
    async for result in every_word_on_a_subscription(use_cases.subscriptions):
        yield result
    use_cases.activation.seen((await world.caller(WEB)).scope_id, WEB)
    yield await use_cases.clock_control.step(2 * DAY)
    yield await world.reset.reset(by=OPERATOR)
    yield await use_cases.engine.ask(contents)
    keeper = HistoryKeeper(use_cases.engine)
    await keeper.chain()
    yield await keeper.remove(DAY)


async def every_word_on_a_task(tasks: Tasks, event_id: EventId) -> AsyncIterator[object]:
    vm = ResourceName("report")
    yield await tasks.claim("rack1", holder="one", limit=9)
    first = TaskRef(event_id, vm, 1)
    await tasks.renew(first)
    await tasks.begin(first, Seen("{}"), by=OPERATOR)
    down = Failure(error="it does not answer", unharmed=False, retry=False)
    await tasks.fail(first, down, Seen(), by=OPERATOR)
    yield await tasks.retry(event_id, vm, by=OPERATOR)
    yield await tasks.claim("rack1", holder="two", limit=9)
    await tasks.returned(event_id, vm, by=OPERATOR)
    await tasks.finish(TaskRef(event_id, vm, 2), Seen("{}", HostName("rack9")), by=OPERATOR)


async def every_word_on_a_drain(drains: HostDrains) -> AsyncIterator[object]:
    host, vm = HostName("rack9"), ResourceName("report")
    yield await drains.begin(host, DrainOrder(anyway=True), by=OPERATOR)
    yield await drains.answer_survey(host, vm, possible=True, reason="", target=None, by=OPERATOR)
    await drains.advance(host, by=OPERATOR)
    yield await drains.answer_listing(host, HostListing(actuator="rack1", vms=()), by=OPERATOR)
    yield await drains.bring_back(host, by=OPERATOR)
    yield await drains.end(host, by=OPERATOR)


async def every_word_on_a_source(sources: Sources, clock: VirtualClock) -> AsyncIterator[object]:
    report = SourceReport(name="hv", holder="one", every=MINUTE, listing=None, error="not yet")
    one, two = (
        ListedVm(
            vm_id=f"5b0b8a3e-0000-4000-8000-00000000000{number}",
            name=f"listed-{number}",
            host="hv-a",
            address=f"10.7.0.{number}",
        )
        for number in (1, 2)
    )
    for listed in ((one, two), (replace(one, address=two.address, host="hv-b"),)):
        yield await sources.take(replace(report, listing=Listing(vms=listed)), by=OPERATOR)
    await clock.step(MINUTE)
    yield await sources.take(report, by=OPERATOR)
    yield await sources.take(replace(report, listing=Listing(vms=(one,))), by=OPERATOR)
    yield await sources.show()
    await clock.step(2 * MINUTE)
    yield await sources.forget("hv", by=OPERATOR)


async def every_word_on_a_subscription(subscriptions: Subscriptions) -> AsyncIterator[object]:
    """Without what is made of chance: each run has another secret."""
    hook = Webhook(url="http://127.0.0.1:9/", secrets=("whsec_mine",))
    yield await subscriptions.add(Declared(name="ops", target=hook), by=OPERATOR)
    yield await subscriptions.change("ops", filter=Filter(vms=("web",)), by=OPERATOR)
    await subscriptions.replace_secret("ops", by=OPERATOR)
    yield await subscriptions.change("ops", target=hook, by=OPERATOR)
    yield await subscriptions.pause("ops", by=OPERATOR)
    yield await subscriptions.resume("ops", by=OPERATOR)
    yield await subscriptions.redeliver("ops", by=OPERATOR)
    await subscriptions.remove("ops", by=OPERATOR)
    await subscriptions.keep([Declared(name="kept", target=hook)], by=OPERATOR)
    yield await subscriptions.show_all()


def _rack1(vm: Resource) -> str:
    return "rack1" if vm.name == "report" else ""


async def outcome(over: Callable[[Store], Store]) -> tuple[list[object], list[object]]:
    """The results of all decisions, and what they leave in the store."""
    clock = VirtualClock(NOON, speed=0)
    async with a_store(clock, RULES, actuator_of=_rack1, wall_clock=clock.now) as store:
        world = World(over(TouchingStore(store)), clock)
        async with world.application, clock:
            results = [result async for result in every_kind_of_decision(world)]
            left: Awaitable[list[object]] = world.use_cases.engine.ask(contents)
            return results, await left


async def test_functions_that_are_run_twice_decide_as_if_run_once(anyio_backend: object) -> None:
    (results, _), callers = await outcome_of_lost_races(outcome)

    assert len(results[-2][0]) > 50  # type: ignore[index]  # the history, before it is removed
    assert callers >= callers_in("service")
