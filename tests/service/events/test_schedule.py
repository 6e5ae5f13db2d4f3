"""Scheduling: what its callers are told."""

import ipaddress
from datetime import timedelta

from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.events.schedule import EventOrder, Scheduler
from forewarned.service.fleet.apply import Fleet
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.listings import EventFilter
from forewarned.service.records import Caller
from tests.bases import a_store
from tests.builders import NOON, OPERATOR, event_id

WEB = ResourceName("web")


async def test_only_what_was_scheduled_is_told_though_more_has_started_meanwhile() -> None:
    """After an outage, the first change of a scope starts what is overdue in it (I20)."""
    clock = VirtualClock(NOON, speed=0)
    async with a_store(clock=clock) as store:
        engine = Engine(store)
        activation = Activation(engine, clock, Rules())
        await Fleet(engine, activation, ipaddress.ip_network("10.1.0.0/16")).apply(
            parse({"vms": [{"name": WEB}]}), by=OPERATOR
        )
        await activation.activate(Caller(WEB, ScopeId(f"vm/{WEB}")), address="10.1.0.1")
        ids = iter([event_id(1), event_id(2)])
        scheduler = Scheduler(engine, Rules(), lambda: next(ids))
        order = EventOrder(type=EventType.FREEZE, resources=(WEB,), source=EventSource.PLATFORM)
        await scheduler.schedule(order, by=OPERATOR)
        await clock.step(timedelta(hours=1))

        told = await scheduler.schedule(order, by=OPERATOR)

        kept = await engine.ask(lambda snapshot: snapshot.events(EventFilter()))
    assert [each.event.id for each in told] == [event_id(2)]
    assert {each.event.id: each.event.status for each in kept} == {
        event_id(1): EventStatus.STARTED,
        event_id(2): EventStatus.SCHEDULED,
    }
