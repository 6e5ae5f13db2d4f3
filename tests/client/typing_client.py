"""The SDK's types as users see them: checked by mypy, not run."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime, timedelta
from typing import assert_type

from forewarned.client import (
    AsyncScheduledEvents,
    Change,
    ChangeKind,
    Contact,
    Document,
    Ending,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Exchange,
    Instance,
    ScheduledEvents,
)


def reading() -> None:
    with ScheduledEvents(timeout=timedelta(seconds=3)) as scheduled:
        assert_type(scheduled, ScheduledEvents)
        assert_type(scheduled.document(), Document)
        assert_type(scheduled.events(), tuple[Event, ...])
        assert_type(scheduled.me(), Instance)
        assert_type(scheduled.contact(), Contact)
        assert_type(scheduled.exchanges(poll=1), Iterator[Exchange])
        changes: Iterator[Change] = scheduled.watch(poll=1, timeout=None, only_mine=True)
        for change in changes:
            assert_type(change.kind, ChangeKind)
            assert_type(change.ending, Ending | None)
            assert_type(change.before, Event | None)
            scheduled.approve(change.event, "another id")


async def reading_async() -> None:
    async with AsyncScheduledEvents("http://127.0.0.1:8169", resource="web_0") as scheduled:
        assert_type(scheduled, AsyncScheduledEvents)
        assert_type(await scheduled.document(), Document)
        assert_type(await scheduled.events(), tuple[Event, ...])
        assert_type(await scheduled.me(), Instance)
        assert_type(scheduled.contact(), Contact)
        changes: AsyncIterator[Change] = scheduled.watch(timeout=timedelta(minutes=1))
        async for change in changes:
            await scheduled.approve(change.event)


def fields(event: Event, document: Document) -> None:
    assert_type(event.event_id, str)
    assert_type(event.type, EventType)
    assert_type(event.status, EventStatus)
    assert_type(event.source, EventSource | None)
    assert_type(event.not_before, datetime | None)
    assert_type(event.duration, timedelta | None)
    assert_type(event.resources, tuple[str, ...])
    assert_type(event.extra, Mapping[str, object])
    assert_type(document.find("id"), Event | None)


def wrong(scheduled: ScheduledEvents, event: Event) -> None:
    scheduled.approve(5)  # type: ignore[arg-type]  # neither an event nor an id
    scheduled.approve([event])  # type: ignore[arg-type]  # each by itself
    scheduled.watch(1)  # type: ignore[call-arg]  # only by name
    event.status = EventStatus.STARTED  # type: ignore[misc]  # frozen
    event.extra["x"] = 1  # type: ignore[index]  # to be read
