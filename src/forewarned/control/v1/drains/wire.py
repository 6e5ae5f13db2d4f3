"""The JSON that requests about drains are answered with."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from forewarned.control.v1.wire import DrainSummary, Shape, about
from forewarned.core.model import EventType
from forewarned.service.drains.model import Drain, DrainState, Move, MoveState
from forewarned.service.drains.questions import Destinations, Question
from forewarned.service.drains.view import DrainView, MoveProgress
from forewarned.service.records import EventRecord


class ShownMove(Shape, frozen=True):
    """One VM's part of a drain."""

    vm: str
    state: MoveState
    event_id: Annotated[str | None, about("its newest event; null before it has one")]
    not_before: Annotated[
        datetime | None, about("NotBefore of that event; null unless it is Scheduled")
    ]
    reads: Annotated[bool, about("whether VMs of its scope read their document")]
    actuator: Annotated[str, about("the actuator that carries out its events; empty if none does")]
    target: Annotated[str | None, about("where its actuator would move it; null: not known")]
    moved_to: Annotated[str | None, about("where it is now; null if it has not been moved")]
    progress: Annotated[str, about("what is being done to it now; empty if nothing is")]
    away: Annotated[
        float | None, about("for how many seconds it was interrupted; null if that is not known")
    ]
    tries: Annotated[int, about("how many events it has had")]
    reason: Annotated[str, about("why it can't be moved, or why its last event failed")]


class ShownDrain(Shape, frozen=True):
    host: str
    state: DrainState
    since: Annotated[datetime, about("when it entered this state")]
    reason: Annotated[str, about("why it is in this state; empty if there is nothing to say")]
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
    vm: Annotated[
        str | None,
        about("can this VM be moved? null: the question is which VMs are on the host"),
    ]
    vm_id: Annotated[str, about("its id on its platform; empty: unknown")]
    vm_host: Annotated[
        str | None, about("the VM's host, according to the fleet; null if vm is null")
    ]
    target: Annotated[
        str | None, about("the host it would have to be moved to; null: any host will do")
    ]


class Questions(Shape, frozen=True):
    questions: tuple[ShownQuestion, ...]
    cordoned: Annotated[tuple[str, ...], about("hosts that no VM may be moved to now")]
    moving: Annotated[
        dict[str, str | None],
        about("events of drains, each with the host to move its VM to; null: any will do"),
    ]


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
        vms=tuple(
            _shown_move(move, view.events.get(move.vm), view.progress.get(move.vm, MoveProgress()))
            for move in drain.moves
        ),
    )


def summary(drain: Drain) -> DrainSummary:
    return DrainSummary(
        host=drain.host,
        state=drain.state,
        since=drain.changed_at,
        reason=drain.reason,
        cordoned=drain.is_cordoned,
        vms=len(drain.moves),
        moved=sum(1 for move in drain.moves if move.state is MoveState.MOVED),
        began_at=drain.began_at,
        deadline_at=drain.deadline_at,
        by=drain.by,
        dry_run=drain.order.dry_run,
    )


def shown_questions(questions: Iterable[Question], open_to: Destinations) -> Questions:
    return Questions(
        questions=tuple(map(_shown_question, questions)),
        cordoned=tuple(sorted(open_to.cordoned)),
        moving={str(event_id): host for event_id, host in open_to.moving.items()},
    )


def _shown_question(question: Question) -> ShownQuestion:
    return ShownQuestion(
        host=question.host,
        type=question.type,
        vm=question.vm,
        vm_id=question.vm_id,
        vm_host=question.vm_host,
        target=question.target,
    )


def _shown_move(move: Move, record: EventRecord | None, progress: MoveProgress) -> ShownMove:
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
        progress=progress.progress,
        away=None if progress.away is None else progress.away.total_seconds(),
        tries=move.tries,
        reason=move.reason,
    )
