"""The agent's loop: reads documents, and starts a worker for every event that names this VM.

Invariants: an event is gone only when a well-formed document lacks it; events in the journal are
left alone until the first such document, because they may be over.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Protocol

from forewarned.agent.event_worker import EventWorker, WorkerContext, tell_if_left_changed
from forewarned.agent.journal import Gone, Planned, Seen
from forewarned.agent.model import Plan, Sighting
from forewarned.client import Change, ChangeKind, Contact, Document, Event, ScheduledEventsError

_log = logging.getLogger(__name__)

STALE: Final = timedelta(seconds=30)
"""Without a good document for longer than this, the agent is unhealthy."""
_AGAIN: Final = timedelta(seconds=3)


class Client(Protocol):
    """What the loop needs of `AsyncScheduledEvents`."""

    async def document(self) -> Document: ...

    def watch(
        self, *, poll: timedelta, only_mine: bool, since: Document
    ) -> AsyncGenerator[Change, None]: ...

    def contact(self) -> Contact: ...


class EventLoop:
    """Made for one run."""

    def __init__(
        self,
        client: Client,
        context: WorkerContext,
        *,
        plan_for: Callable[[Sighting], Plan],
        poll: timedelta,
        boot: str = "",
    ) -> None:
        self._client = client
        self._context = context
        self._plan_for = plan_for
        self._poll = poll
        self._boot = boot
        self._workers: dict[str, EventWorker] = {}
        self._reappeared: set[str] = set()
        self._trouble: Exception | None = None

    @property
    def workers(self) -> Mapping[str, EventWorker]:
        """Of events that are not finished, by their key in the journal."""
        return self._workers

    @property
    def reappeared(self) -> frozenset[str]:
        """Keys of events that are shown again after they were gone. They are left alone."""
        return frozenset(self._reappeared)

    async def run(self) -> None:
        """Runs until it is cancelled. Raises JournalError: without a journal no hook may run."""
        for progress in self._context.journal.events.values():
            tell_if_left_changed(progress)
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    await self._follow(tasks)
                except ScheduledEventsError as error:
                    # Even a refusal may pass while the agent runs; its health says why.
                    if self._trouble is None:
                        _log.warning("no document", extra={"why": str(error)})
                    self._trouble = error
                await asyncio.sleep(_AGAIN.total_seconds())

    def why_not_healthy(self) -> str:
        """Empty if it is healthy."""
        return why_not_healthy(self._client.contact(), self._trouble)

    async def _follow(self, tasks: asyncio.TaskGroup) -> None:
        document = await self._client.document()
        if self._trouble is not None:
            _log.info("documents can be read again")
        self._trouble = None
        self._take_in_whole(document, tasks)
        async for change in self._client.watch(poll=self._poll, only_mine=True, since=document):
            self._take_in(change, tasks)

    def _take_in_whole(self, document: Document, tasks: asyncio.TaskGroup) -> None:
        """The first document, or the first after a gap: events that it lacks are gone."""
        mine = document.of(self._context.me).events
        present = {event.key for event in mine}
        self._reappeared &= present
        open_events = [k for k, p in self._context.journal.events.items() if not p.is_finished]
        for key in open_events:
            if key not in present:
                self._gone(key)
        for event in mine:
            self._seen(event)
        self._attend_to((*open_events, *present), tasks)

    def _take_in(self, change: Change, tasks: asyncio.TaskGroup) -> None:
        if change.kind is ChangeKind.GONE:
            self._gone(change.event.key)
        else:
            self._seen(change.event)
        self._attend_to([change.event.key], tasks)

    def _gone(self, key: str) -> None:
        self._reappeared.discard(key)
        progress = self._context.journal.events.get(key)
        if progress is None or progress.is_gone:
            return
        self._context.journal.write(Gone(event_id=key, at=self._context.now()))
        _log.info("event gone", extra={"event": progress.event_id})

    def _seen(self, event: Event) -> None:
        journal, now = self._context.journal, self._context.now()
        sighting = _sighting(event)
        progress = journal.events.get(event.key)
        if progress is None:
            plan = self._plan_for(sighting)
            journal.write(
                Planned(event_id=event.key, at=now, sighting=sighting, plan=plan, boot=self._boot)
            )
            _log.info("event seen", extra=_facts(sighting) | {"rule": plan.rule})
        elif progress.is_gone:
            # Hooks run once, so nothing is prepared a second time.
            if event.key not in self._reappeared:
                _log.warning("event seen again after it was gone", extra=_facts(sighting))
            self._reappeared.add(event.key)
        elif progress.sighting != sighting:
            journal.write(Seen(event_id=event.key, at=now, sighting=sighting))
            _log.info("event changed", extra=_facts(sighting))

    def _attend_to(self, keys: Iterable[str], tasks: asyncio.TaskGroup) -> None:
        for key in keys:
            progress = self._context.journal.events.get(key)
            if progress is None or progress.is_finished or key in self._workers:
                continue
            worker = self._workers[key] = EventWorker(key, self._context)
            task = tasks.create_task(worker.run(), name=f"event {key}")
            task.add_done_callback(lambda _, key=key: self._workers.pop(key, None))  # type: ignore[misc]  # the default is the key of this turn of the loop
        # All of them: an event may wait for another to be over.
        for worker in self._workers.values():
            worker.wake()


def _sighting(event: Event) -> Sighting:
    return Sighting(
        event_id=event.event_id,
        type=str(event.type),
        source="" if event.source is None else str(event.source),
        resources=event.resources,
        not_before=event.not_before,
        duration=event.duration,
        description=event.description,
        is_started=event.is_started,
    )


def why_not_healthy(contact: Contact, trouble: Exception | None) -> str:
    """Empty while documents arrive. Silence is healthy while the service holds a request."""
    why = trouble or contact.trouble
    if contact.age is None:
        return f"no document yet: {why}" if why else "no document yet"
    patience = STALE if why is not None else STALE + contact.wait
    if contact.age <= patience:
        return ""
    because = f": {why}" if why else ""
    return f"no document for {contact.age.total_seconds():.0f} s{because}"


def _facts(sighting: Sighting) -> dict[str, object]:
    left: datetime | None = sighting.not_before
    return {
        "event": sighting.event_id,
        "type": sighting.type,
        "resources": list(sighting.resources),
        "not_before": None if left is None else left.isoformat(),
        "started": sighting.is_started,
    }
