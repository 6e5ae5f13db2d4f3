"""Hooks, clients and readiness for tests of the agent, none of which reaches anything."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from forewarned.agent.hooks.ports import Call
from forewarned.agent.model import HookOutcome, Phase, Verdict
from forewarned.agent.readiness.ports import ReadinessReport
from forewarned.client import (
    Change,
    ChangeKind,
    Contact,
    Document,
    Event,
    EventSource,
    EventStatus,
    EventType,
    ScheduledEventsError,
)
from tests.agent.journeys import EVENT, ME
from tests.builders import MINUTE, NOON

DONE: Final = HookOutcome(verdict=Verdict.DONE)


def an_event(
    event_id: str = EVENT,
    *,
    resources: tuple[str, ...] = (ME,),
    is_started: bool = False,
    not_before: datetime | None = NOON + 15 * MINUTE,
) -> Event:
    return Event(
        event_id=event_id,
        type=EventType.REBOOT,
        status=EventStatus.STARTED if is_started else EventStatus.SCHEDULED,
        resources=resources,
        not_before=None if is_started else not_before,
        source=EventSource.PLATFORM,
    )


def a_document(*events: Event, incarnation: int = 1) -> Document:
    return Document(incarnation=incarnation, events=events, at=NOON)


def a_contact(
    *,
    age: timedelta | None = timedelta(0),
    wait: timedelta = timedelta(0),
    trouble: Exception | None = None,
    at: datetime | None = NOON,
) -> Contact:
    return Contact(
        endpoint="http://169.254.169.254",
        at=at,
        age=age,
        incarnation=1,
        wait=wait,
        trouble=trouble,
    )


class StubHook:
    """Notes each run; does what it is told to."""

    def __init__(
        self,
        outcome: HookOutcome = DONE,
        *,
        does: Callable[[Call], Awaitable[None]] | None = None,
    ) -> None:
        self.calls: list[Call] = []
        self._outcome = outcome
        self._does = does

    @property
    def phases(self) -> list[Phase]:
        return [call.phase for call in self.calls]

    async def run(self, call: Call) -> HookOutcome:
        self.calls.append(call)
        if self._does is not None:
            await self._does(call)
        return self._outcome

    async def undo(self, call: Call) -> HookOutcome:
        return await self.run(call)

    async def check(self) -> list[str]:
        return []

    def describe(self, phase: Phase) -> str:
        return f"{phase} something"


class StubClient:
    """Tells what a test says: documents that are read, changes that are watched, failures."""

    def __init__(self, *documents: Document | ScheduledEventsError) -> None:
        self._documents = list(documents)
        self._changes: asyncio.Queue[Change | ScheduledEventsError] = asyncio.Queue()
        self.approved: list[str] = []
        self.refusals: list[ScheduledEventsError] = []
        self.reads = 0

    def tell(self, kind: ChangeKind, event: Event) -> None:
        self._changes.put_nowait(Change(kind=kind, event=event, incarnation=2, at=NOON))

    def fail(self, error: ScheduledEventsError) -> None:
        self._changes.put_nowait(error)

    async def document(self) -> Document:
        self.reads += 1
        found = self._documents.pop(0)
        if isinstance(found, ScheduledEventsError):
            raise found
        return found

    async def watch(
        self, *, poll: timedelta, only_mine: bool, since: Document
    ) -> AsyncGenerator[Change, None]:
        assert only_mine
        while True:
            change = await self._changes.get()
            if isinstance(change, ScheduledEventsError):
                raise change
            yield change

    async def approve(self, event_id: str) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.approved.append(event_id)

    def contact(self) -> Contact:
        return a_contact()


class StubReadiness:
    """What several agents share, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, ReadinessReport]] = {}
        self.trouble: Exception | None = None

    async def report(self, event_id: str, me: str, report: ReadinessReport) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.kept.setdefault(event_id, {})[me] = report

    async def reports(self, event_id: str) -> Mapping[str, ReadinessReport]:
        if self.trouble is not None:
            raise self.trouble
        return dict(self.kept.get(event_id, {}))

    async def forget(self, event_id: str, me: str) -> None:
        self.kept.get(event_id, {}).pop(me, None)
