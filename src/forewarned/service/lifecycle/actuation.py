"""What actuators report: the impact of a Started event, and its completion.

Reports may come late and more than once. One that comes after the event is over changes nothing.
"""

from collections.abc import Collection, Mapping
from itertools import count
from typing import assert_never

from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.errors import ClosedEventError, UnknownEventError
from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.model import Actor, Event, EventStatus, EventType, Scope
from forewarned.core.transitions import Started
from forewarned.service.engine import Engine, save
from forewarned.service.ports import Actuator, Transaction
from forewarned.service.records import Commit, EventRecord, Report, Stage

_ACTUATOR = Actor(name="actuator")
_SPARE_HOSTS = "spare hosts used"
_INTERRUPTED = "interrupted"


class Actuation:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def report(self, *reports: Report) -> None:
        def decision(tx: Transaction) -> None:
            begun = _begun_before(reports, tx)
            for report in reports:
                scope = tx.load(report.scope_id)
                event = scope.events.get(report.event_id)
                if event is None or event.status is not EventStatus.STARTED:
                    continue
                if report.stage is Stage.INTERRUPTED:
                    if event.id in begun:
                        continue
                    begun.add(event.id)
                save(tx, _decide(report.stage, scope, event, tx), by=_ACTUATOR)

        touching = list(dict.fromkeys(report.scope_id for report in reports))
        await self._engine.decide(decision, touching=touching)

    async def complete_by_hand(self, event_id: EventId, *, by: Actor) -> EventRecord:
        """An operator says that the work of a Started event is done."""

        def decision(tx: Transaction) -> EventRecord:
            record = tx.event(event_id)
            if record is None:
                raise UnknownEventError(event_id)
            if record.ended_at is not None:
                raise ClosedEventError(event_id)
            save(tx, _complete(tx.load(record.scope_id), event_id, tx), by=by)
            return tx.event(event_id) or record

        return await self._engine.decide(decision)

    async def resume(self, actuator: Actuator) -> None:
        """Hand every Started event to the actuator again, after a restart."""
        for record in await self._engine.ask(lambda snapshot: snapshot.started()):
            actuator.begin(record.scope_id, record.event)


def hand_over(commit: Commit, actuator: Actuator) -> None:
    """Give the actuator what a commit has started."""
    for fact in commit.transitions:
        if isinstance(fact, Started):
            actuator.begin(fact.scope_id, fact.event)


def _begun_before(reports: Collection[Report], tx: Transaction) -> set[EventId]:
    """The events whose impact has begun already: VMs must not go through it a second time.

    After a restart an actuator begins every Started event again.
    """
    impacts = [report.event_id for report in reports if report.stage is Stage.INTERRUPTED]
    return set(tx.recorded(_INTERRUPTED, impacts)) if impacts else set()


def _decide(stage: Stage, scope: Scope, event: Event, tx: Transaction) -> Change:
    match stage:
        case Stage.INTERRUPTED:
            return lifecycle.interrupt(scope, event.id, now=tx.now)
        case Stage.RESTORED:
            return lifecycle.restore(scope, event.id, now=tx.now)
        case Stage.COMPLETED:
            return _complete(scope, event.id, tx)
        case other:
            assert_never(other)


def _complete(scope: Scope, event_id: EventId, tx: Transaction) -> Change:
    event = scope.events.get(event_id)
    moved_to = _new_hosts(event, tx) if event is not None else {}
    return lifecycle.complete(scope, event_id, now=tx.now, moved_to=moved_to)


def _new_hosts(event: Event, tx: Transaction) -> Mapping[ResourceName, HostName]:
    """A new host for each VM, so that no host gets VMs of two update domains."""
    if event.type is not EventType.REDEPLOY:
        return {}
    numbers = count(int(tx.note(_SPARE_HOSTS) or 0) + 1)
    hosts = {}
    for name in event.resources:
        # A fleet file may have declared a host of such a name.
        number = next(n for n in numbers if not tx.scopes_on(_spare_host(n)))
        hosts[name] = _spare_host(number)
        tx.put_note(_SPARE_HOSTS, str(number))
    return hosts


def _spare_host(number: int) -> HostName:
    return HostName(f"spare-{number:02}")
