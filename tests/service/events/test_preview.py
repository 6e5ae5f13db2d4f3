"""Rehearsals: what would happen is told, and nothing has happened."""

import ipaddress
from functools import partial
from pathlib import Path

from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core import lifecycle
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor, EventSource, EventStatus, EventType
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.events.schedule import EventOrder, Scheduler
from forewarned.service.fleet.apply import Fleet
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Snapshot
from forewarned.storage.sqlite.store import SqliteStore
from tests.builders import NOON, event_id
from tests.control.control_api import control_api

ME = Actor(name="tester")


async def test_a_rehearsal_tells_what_would_happen_and_leaves_no_trace() -> None:
    async with control_api() as steered:
        await steered.switch_on("web")
        engine = steered.services.engine
        heard: list[object] = []
        engine.tell(heard.append)
        before = await engine.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))
        rehearsed = Scheduler(
            engine.rehearsal(), steered.services.use_cases.rules, lambda: event_id(77)
        )

        [record] = await rehearsed.schedule(
            EventOrder(
                type=EventType.REBOOT,
                resources=(ResourceName("web"),),
                source=EventSource.USER,
            ),
            by=ME,
        )

        after = await engine.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))
        kept = await engine.ask(lambda s: s.events(EventFilter()))
        assert record.event.status is EventStatus.SCHEDULED
        assert record.event.not_before is not None
        assert (after, kept, heard) == (before, [], [])


def _scope(name: str, snapshot: Snapshot) -> ScopeId:
    binding = snapshot.binding(name)
    assert binding is not None
    return binding.scope_id


async def test_a_rehearsal_leaves_no_trace_on_disk_either(tmp_path: Path) -> None:
    clock = VirtualClock(NOON, speed=0)
    rules = Rules()
    next_wake = partial(lifecycle.next_wake, rules=rules)
    async with SqliteStore(tmp_path / "forewarned.db", clock, next_wake=next_wake) as store:
        engine = Engine(store)
        fleet = Fleet(
            engine, Activation(engine, clock, Rules()), ipaddress.ip_network("10.1.0.0/16")
        )
        await fleet.apply(parse({"vms": [{"name": "web"}]}), by=ME)
        before = await engine.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))

        [record] = await Scheduler(engine.rehearsal(), rules, lambda: event_id(77)).schedule(
            EventOrder(
                type=EventType.FREEZE,
                resources=(ResourceName("web"),),
                source=EventSource.PLATFORM,
            ),
            by=ME,
        )

        after = await engine.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))
        # Nobody reads this scope's document, so there would be no notice.
        assert record.event.status is EventStatus.STARTED
        assert after == before
        assert await engine.ask(lambda s: s.event(record.event.id)) is None
