"""Rehearsals: what would happen is told, and nothing has happened."""

import ipaddress
from functools import partial
from pathlib import Path

from notbefore.clock import VirtualClock
from notbefore.control.fleet_wire import parse
from notbefore.core import lifecycle
from notbefore.core.ids import ResourceName, ScopeId
from notbefore.core.model import Actor, EventSource, EventStatus, EventType
from notbefore.core.rules import Rules
from notbefore.service.deciding import Decider
from notbefore.service.event_filter import EventFilter
from notbefore.service.fleet import Fleet
from notbefore.service.ports import HistoryFilter, Snapshot
from notbefore.service.reading import Reading
from notbefore.service.scheduling import Request, Scheduling
from notbefore.storage.sqlite import SqliteStore
from tests.builders import NOON, event_id
from tests.control.steering import steering

ME = Actor(name="tester")


async def test_a_rehearsal_tells_what_would_happen_and_leaves_no_trace() -> None:
    async with steering() as steered:
        await steered.switch_on("web")
        decider = steered.services.decider
        heard: list[object] = []
        decider.tell(heard.append)
        before = await decider.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))
        rehearsed = Scheduling(decider.rehearsal(), steered.services.rules, lambda: event_id(77))

        [record] = await rehearsed.schedule(
            Request(
                type=EventType.REBOOT,
                resources=(ResourceName("web"),),
                source=EventSource.USER,
            ),
            by=ME,
        )

        after = await decider.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))
        kept = await decider.ask(lambda s: s.events(EventFilter()))
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
    async with SqliteStore(tmp_path / "notbefore.db", clock, next_wake=next_wake) as store:
        decider = Decider(store)
        fleet = Fleet(decider, Reading(decider, clock), ipaddress.ip_network("10.1.0.0/16"))
        await fleet.apply(parse({"vms": [{"name": "web"}]}), by=ME)
        before = await decider.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))

        [record] = await Scheduling(decider.rehearsal(), rules, lambda: event_id(77)).schedule(
            Request(
                type=EventType.FREEZE,
                resources=(ResourceName("web"),),
                source=EventSource.PLATFORM,
            ),
            by=ME,
        )

        after = await decider.ask(lambda s: (s.load(_scope("web", s)), s.history(HistoryFilter())))
        # Nobody reads this scope's document, so there would be no notice.
        assert record.event.status is EventStatus.STARTED
        assert after == before
        assert await decider.ask(lambda s: s.event(record.event.id)) is None
