"""A recording instead of the documents of one scope, at the pace of the server's clock.

Nothing that VMs do changes what comes next. Approvals are answered as Azure answers them, and are
written into the history; the event starts when it did while it was recorded.
"""

import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from typing_extensions import override

from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import Actor, Document
from forewarned.metadata.http.responses import Rendered, Response
from forewarned.recordings.file import read_recording
from forewarned.recordings.form import Answered, Outcome, RecordingError, Unanswered
from forewarned.runtime.assembly import Clock
from forewarned.runtime.delivery.timeline import (
    EmptyRecordingError,
    Timeline,
    events_of,
    incarnation_of,
    moved,
    timeline,
)
from forewarned.runtime.listeners.sockets import StartError
from forewarned.service.board import Board
from forewarned.service.engine import Engine
from forewarned.service.errors import UnknownFaultError
from forewarned.service.faults import Fault, FaultKind, FaultMethod, Faults
from forewarned.service.lifecycle.ports import Timer
from forewarned.service.records import Caller, PageContent
from forewarned.service.requests.ports import Approver

Render = Callable[[Document, str], Rendered]

_log = logging.getLogger(__name__)

_SENT: Final = {"content-type": "Content-Type", "etag": "ETag", "retry-after": "Retry-After"}
"""Headers as they were recorded. Date and Server are this server's own."""
_REVISION: Final = 1 << 60
"""Of the first page: above all that a store has, so that no commit takes the recording's place."""
_SILENT: Final = timedelta(minutes=2)
"""How long a request is left without an answer that had none in time: as a client may wait."""


def read_timeline(path: Path) -> Timeline:
    """Raises StartError."""
    try:
        return timeline(read_recording(path))
    except (RecordingError, EmptyRecordingError) as error:
        raise StartError(f"{path}: {error}") from error
    except OSError as error:
        raise StartError(f"can't read {path}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDocument(Document):
    """A document of which the server knows no more than how it is answered."""

    rendered: Rendered


class RecordedAnswer(Rendered):
    """What was answered, whatever its status. Unchanged only by a tag that was recorded."""

    __slots__ = ()

    def __init__(self, answer: Answered, body: bytes) -> None:
        headers = {
            name: answer.headers[key] for key, name in _SENT.items() if key in answer.headers
        }
        tag = headers.get("ETag", "")
        self.tag = tag.removeprefix("W/").strip('"') if answer.status == 200 else ""
        self.document = Response(answer.status, body, headers)
        self._unmodified = Response(304, None, {"ETag": tag})

    @override
    def matches(self, tags: frozenset[str]) -> bool:
        return bool(self.tag) and super().matches(tags)


class Player:
    """Shows a scope's document, and what went wrong, from moment to moment."""

    def __init__(
        self,
        timeline: Timeline,
        *,
        scope_id: ScopeId,
        board: Board[Rendered],
        clock: Clock,
        faults: Faults,
    ) -> None:
        """The Board is made with `recorded_or`; from `begin` on, the scope has no other page."""
        self.scope_id = scope_id
        self._timeline = timeline
        self._board = board
        self._clock = clock
        self._faults = faults
        self._began_at = clock.now()
        self._incarnation = 0
        self._fault_id: str | None = None
        self._revision = _REVISION
        self._timer: Timer | None = None
        self.event_ids: frozenset[str] = frozenset()
        """Those of the document that is shown, in upper case."""

    def begin(self) -> None:
        """Show the first moment, and the others when their time has come."""
        self._began_at = self._clock.now()
        shown = self._board.page(self.scope_id)
        self._revision = _REVISION if shown is None else max(_REVISION, shown.revision + 1)
        self._show(0)

    def stop(self) -> None:
        """Show nothing more; the last answer stays."""
        self._remove_fault()
        if self._timer is not None:
            self._timer.cancel()

    def _show(self, index: int) -> None:
        moments = self._timeline.moments
        outcome = moments[index].outcome
        self._remove_fault()
        if isinstance(outcome, Unanswered):
            self._leave_unanswered(outcome)
        else:
            self._show_answer(outcome, revision=self._revision + index)
        if index + 1 == len(moments):
            _log.info("the recording has been played to its end")
            return
        due = self._began_at + moments[index + 1].after
        self._timer = self._clock.at(due, partial(self._go_on, index + 1))

    async def _go_on(self, index: int) -> None:
        self._show(index)

    def _show_answer(self, answer: Answered, *, revision: int) -> None:
        body = moved(answer.content, self._began_at - self._timeline.began_at)
        incarnation = incarnation_of(answer)
        if incarnation is not None:
            self._incarnation = incarnation
            self.event_ids = frozenset(_ids(answer))
        document = RecordedDocument(
            incarnation=self._incarnation, rendered=RecordedAnswer(answer, body)
        )
        self._board.show(
            PageContent(
                scope_id=self.scope_id, revision=revision, is_active=True, document=document
            )
        )
        _log.info("replayed an answer", extra={"status": answer.status, "incarnation": incarnation})

    def _leave_unanswered(self, outcome: Unanswered) -> None:
        delay = _SILENT if outcome.loss == "timed_out" else None
        fault = Fault(kind=FaultKind.RESET, method=FaultMethod.GET, delay=delay)
        self._fault_id = self._faults.add(fault).fault.id
        _log.info("replayed a request without an answer", extra={"loss": outcome.loss})

    def _remove_fault(self) -> None:
        if self._fault_id is not None:
            # An operator may have removed it.
            with suppress(UnknownFaultError):
                self._faults.remove(self._fault_id)
            self._fault_id = None


def _ids(outcome: Outcome) -> list[str]:
    return [str(event.get("EventId")).upper() for event in events_of(outcome)]


def recorded_or(render: Render) -> Render:
    """What was recorded as it is, in whatever version is asked for; the rest by `render`."""

    def rendered(document: Document, version: str) -> Rendered:
        if isinstance(document, RecordedDocument):
            return document.rendered
        return render(document, version)

    return rendered


class RecordedApprovals:
    """Answers as Azure would: 200 for every event that is shown, even if it was approved before.

    Approvals of VMs that read no recording go to `approvals`.
    """

    def __init__(self, engine: Engine, approvals: Approver) -> None:
        self.player: Player | None = None
        """None while nothing is played back."""
        self._engine = engine
        self._approvals = approvals

    async def approve(
        self, event_ids: Collection[EventId], *, caller: Caller, address: str
    ) -> None:
        if self.player is None or self.player.scope_id != caller.scope_id:
            await self._approvals.approve(event_ids, caller=caller, address=address)
            return
        for event_id in event_ids:
            if event_id.upper() not in self.player.event_ids:
                raise UnknownEventError(event_id)
        by = Actor(name=f"vm:{caller.name}", address=address, resource=caller.name)
        named = "event" if len(event_ids) == 1 else "events"
        cause = f"{named} {', '.join(event_ids)} of the recording"
        await self._engine.decide(lambda tx: tx.record("approved", by=by, cause=cause))
