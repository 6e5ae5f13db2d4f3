"""What drains want to know of actuators, and where VMs may be moved while there are drains.

The server can't look at a platform: only actuators can. Invariant: questions follow from the rows
of drains alone. Asking and answering twice changes nothing, so no one holds a question.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.model import EventType
from forewarned.service.drains import progress
from forewarned.service.drains.model import Drain, Move
from forewarned.service.ports import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a drain wants to know of an actuator."""

    host: HostName
    """The one that is drained."""
    type: EventType
    """What would be scheduled."""
    vm: ResourceName | None
    """Whether this VM can be moved; None to ask which VMs are on the host."""
    vm_id: str = ""
    """The platform's own id of the VM; empty if it is unknown."""
    vm_host: HostName | None = None
    """Where the fleet has the VM; None where it is not about one."""
    target: HostName | None = None
    """Where it would have to be moved; None if any host will do that is not drained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """Where VMs may be moved now."""

    cordoned: frozenset[HostName]
    """Hosts that no VM may be moved to."""
    moving: Mapping[EventId, HostName | None]
    """The open events of drains: what they are for is to move a VM. Each with the host that it has
    to be moved to, which is where it returns to; None if any host will do that is not drained."""


def destinations(drains: Iterable[Drain]) -> Destinations:
    known = list(drains)
    return Destinations(
        cordoned=frozenset(drain.host for drain in known if drain.is_cordoned),
        moving={
            move.event_id: _wanted_host(drain, move)
            for drain in known
            for move in drain.moves
            if move.event_id is not None and move.is_open and drain.is_watched
        },
    )


def _wanted_host(drain: Drain, move: Move) -> HostName | None:
    # An event that had started when the drain was ended takes the VM away once more.
    return drain.host if drain.is_returning and move.tries else None


def questions_for(snapshot: Snapshot, drain: Drain, actuator: str) -> list[Question]:
    if not drain.is_watched:
        return []
    asked = [move.vm for move in drain.moves if move.is_asked and move.actuator == actuator]
    questions = [
        Question(
            host=drain.host,
            type=drain.order.type,
            vm=binding.name,
            vm_id=binding.profile.platform_id,
            vm_host=snapshot.load(binding.scope_id).resources[binding.name].host,
            target=drain.host if drain.is_returning else None,
        )
        for binding in (snapshot.bindings_named(asked) if asked else ())
    ]
    if progress.is_asked_for_listing(drain) and actuator in progress.listing_actuators(drain):
        questions.append(Question(host=drain.host, type=drain.order.type, vm=None))
    return questions
