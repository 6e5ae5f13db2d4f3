"""Rehearsals: what would happen is told, and nothing has happened."""

from notbefore.core.ids import ResourceName, ScopeId
from notbefore.core.model import Actor, EventSource, EventStatus, EventType
from notbefore.service.ports import EventFilter, HistoryFilter, Snapshot
from notbefore.service.scheduling import Request, Scheduling
from tests.builders import event_id
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
