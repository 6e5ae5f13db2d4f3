"""The JSON of drains: bodies, query parameters and answers."""

from datetime import datetime
from typing import Annotated

import msgspec

from forewarned.control.v1.request_wire import Ask, Text
from forewarned.control.v1.wire import Shape, Span, about
from forewarned.core.model import EventType
from forewarned.service.drains.host_drains import DrainView, Question
from forewarned.service.drains.model import DrainOrder, DrainState, Move, MoveState
from forewarned.service.records import EventRecord


class DrainHost(Ask, frozen=True):
    type: Annotated[EventType, about("Freeze for live migration, Redeploy for a cold move")] = (
        EventType.FREEZE
    )
    wave: Annotated[
        int, msgspec.Meta(ge=1, le=10_000, description="VMs with the same NotBefore")
    ] = 4
    notice: Span | None = None
    short_notice: Annotated[bool, about("allow a notice below the minimum; emulators only")] = False
    deadline: Annotated[Span | None, about("by when the host is to be empty, from now on")] = None
    dry_run: Annotated[bool, about("only ask which VMs can be moved")] = False
    anyway: Annotated[
        bool, about("go ahead although VMs can't be moved, or don't read their document")
    ] = False

    def order(self) -> DrainOrder:
        return DrainOrder(
            type=self.type,
            wave=self.wave,
            notice=None if self.notice is None else self.notice.length,
            short_notice=self.short_notice,
            deadline=None if self.deadline is None else self.deadline.length,
            dry_run=self.dry_run,
            anyway=self.anyway,
        )


class QuestionsQuery(Ask, frozen=True):
    actuator: Text


class SurveyAnswer(Ask, frozen=True):
    vm: Text
    possible: bool
    reason: Annotated[str, about("why not")] = ""
    target: Annotated[str | None, about("the host it would be moved to")] = None


class HostListing(Ask, frozen=True):
    vms: Annotated[
        tuple[str, ...] | None, about("what the platform has on the host; null: it can't be asked")
    ]


class ShownMove(Shape, frozen=True):
    """One VM's part of a drain."""

    vm: str
    state: MoveState
    event_id: Annotated[str | None, about("its newest event; null before it has one")]
    not_before: Annotated[datetime | None, about("of that event; null unless it is Scheduled")]
    reads: Annotated[bool, about("whether VMs of its scope read their document")]
    actuator: Annotated[str, about("what carries out its events; empty if nothing does")]
    target: Annotated[str | None, about("where its actuator would move it; null: not known")]
    moved_to: Annotated[str | None, about("where it is now; null if it has not been moved")]
    tries: Annotated[int, about("how many events it has had")]
    reason: Annotated[str, about("why it can't be moved, or why its last event failed")]


class ShownDrain(Shape, frozen=True):
    host: str
    state: DrainState
    since: Annotated[datetime, about("when it came into this state")]
    reason: Annotated[str, about("why it is Planned, Stuck or Canceled; empty if it is not")]
    type: EventType
    wave: int
    began_at: datetime
    deadline_at: datetime | None
    by: str
    dry_run: bool
    vms: tuple[ShownMove, ...]


class ShownQuestion(Shape, frozen=True):
    host: str
    type: Annotated[EventType, about("the event that would be scheduled")]
    vm: Annotated[str | None, about("can it be moved; null: which VMs are on the host")]
    vm_id: Annotated[str, about("the platform's own id of the VM")]


class Questions(Shape, frozen=True):
    questions: tuple[ShownQuestion, ...]


def shown(view: DrainView) -> ShownDrain:
    drain = view.drain
    return ShownDrain(
        host=drain.host,
        state=drain.state,
        since=drain.changed_at,
        reason=drain.reason,
        type=drain.order.type,
        wave=drain.order.wave,
        began_at=drain.began_at,
        deadline_at=drain.deadline_at,
        by=drain.by,
        dry_run=drain.order.dry_run,
        vms=tuple(_shown_move(move, view.events.get(move.vm)) for move in drain.moves),
    )


def shown_question(question: Question) -> ShownQuestion:
    return ShownQuestion(
        host=question.host, type=question.type, vm=question.vm, vm_id=question.vm_id
    )


def _shown_move(move: Move, record: EventRecord | None) -> ShownMove:
    is_open = record is not None and record.ended_at is None
    return ShownMove(
        vm=move.vm,
        state=move.state,
        event_id=move.event_id,
        not_before=record.event.not_before if record is not None and is_open else None,
        reads=move.reads,
        actuator=move.actuator,
        target=move.target,
        moved_to=move.moved_to,
        tries=move.tries,
        reason=move.reason,
    )
