"""A message as names and plain values: the data of a CloudEvent, and what templates may use.

Invariant: receivers parse this, so names stay, and keep their meaning. New ones may be added.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from forewarned.core import descriptions
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Approval, Event, EventSource, EventStatus, EventType, StartCause
from forewarned.service.subscriptions.model import Message, PublishedStatus

_SAMPLE_AT: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_OPEN: Final = {PublishedStatus.SCHEDULED, PublishedStatus.APPROVED, PublishedStatus.CANCELED}
"""In these, an event has not started."""


# Any, here and below: what JSON is made of.
def content(message: Message) -> dict[str, Any]:
    return {
        "status": message.status.value,
        "at": instant(message.at),
        "scope": message.scope_id,
        "resource_id": message.resource_id,
        "location": message.location,
        "vms": list(message.vms),
        "actor": message.actor,
        "cause": message.cause,
        "event": _event(message.event),
    }


def instant(at: datetime) -> str:
    """RFC 3339, in UTC."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _event(event: Event) -> dict[str, Any]:
    approval = event.approval
    return {
        "event_id": event.id,
        "type": event.type.value,
        "status": event.status.value,
        "source": event.source.value,
        "resources": list(event.resources),
        "not_before": _instant_or_none(event.not_before),
        "created_at": instant(event.created_at),
        "started_at": _instant_or_none(event.started_at),
        "start_cause": None if event.start_cause is None else event.start_cause.value,
        "description": event.description,
        "duration_seconds": None if event.duration is None else event.duration.total_seconds(),
        "announced": event.announced,
        "approval": None
        if approval is None
        else {"by": approval.by, "at": instant(approval.at), "by_policy": approval.by_policy},
        "maintenance": event.maintenance,
    }


def _instant_or_none(at: datetime | None) -> str | None:
    return None if at is None else instant(at)


def samples() -> Iterator[Message]:
    """One of each status, to try a template with."""
    for number, status in enumerate(PublishedStatus, 1):
        is_open = status in _OPEN
        yield Message(
            number=number,
            status=status,
            at=_SAMPLE_AT,
            scope_id=ScopeId("avset/web"),
            event=Event(
                id=EventId("0000000A-0000-4000-8000-000000000000"),
                type=EventType.REBOOT,
                status=_SAMPLE_STATUS[status],
                source=EventSource.USER,
                resources=(ResourceName("web_0"), ResourceName("web_1")),
                created_at=_SAMPLE_AT,
                not_before=_SAMPLE_AT + timedelta(minutes=15) if is_open else None,
                description=descriptions.USER_REBOOT,
                duration=timedelta(seconds=9) if is_open else None,
                approval=None if is_open else Approval(by="web_0", at=_SAMPLE_AT),
                started_at=None if is_open else _SAMPLE_AT,
                start_cause=None if is_open else StartCause.APPROVED,
            ),
            vms=(ResourceName("web_0"), ResourceName("web_1")),
            actor="operator",
            resource_id="/subscriptions/0/resourceGroups/rg/providers/Microsoft.Compute"
            "/availabilitySets/web",
            location="local",
        )


_SAMPLE_STATUS: Final = {
    PublishedStatus.SCHEDULED: EventStatus.SCHEDULED,
    PublishedStatus.APPROVED: EventStatus.SCHEDULED,
    PublishedStatus.STARTED: EventStatus.STARTED,
    PublishedStatus.STALLED: EventStatus.STARTED,
    PublishedStatus.COMPLETED: EventStatus.COMPLETED,
    PublishedStatus.CANCELED: EventStatus.CANCELED,
}
