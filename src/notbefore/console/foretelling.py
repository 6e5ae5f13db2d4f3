"""What will happen, and when, in sentences. Pure: made from events that a rehearsal has brought."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from notbefore.console.rendering import ahead, instant
from notbefore.core.model import Event, EventStatus, EventType, StartCause
from notbefore.durations import format_duration
from notbefore.service.ports import EventRecord

_MOST_NAMES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    type: EventType
    resources: str
    scope: str
    sentence: str


def foretell(records: Iterable[EventRecord], *, now: datetime) -> list[Foretold]:
    return [
        Foretold(
            type=record.event.type,
            resources=_names(record.event),
            scope=record.scope_id,
            sentence=_sentence(record.event, now),
        )
        for record in records
    ]


def _sentence(event: Event, now: datetime) -> str:
    if event.status is EventStatus.SCHEDULED and event.not_before is not None:
        left = format_duration(ahead(event.not_before, now))
        held = "" if event.approval is None else " It is approved already, but waits for others."
        return (
            f"The VMs of its scope are told now. It starts when one of them approves it, and at"
            f" {instant(event.not_before)} (in {left}) if none does.{held}"
        )
    match event.start_cause:
        case StartCause.INACTIVE if event.type is EventType.TERMINATE:
            return (
                "It happens at once: there is nobody to tell, or the VM's model asks for no notice."
            )
        case StartCause.INACTIVE:
            return (
                "It happens at once and without notice, because no VM reads this scope's document."
            )
        case StartCause.HOST_FAILURE:
            return "It has started when the VMs hear of it: a failed host gives no notice."
        case StartCause.POLICY:
            return "It starts at once: the scope's policy approves such events."
        case _:
            return "It starts at once."


def _names(event: Event) -> str:
    shown = ", ".join(event.resources[:_MOST_NAMES])
    more = len(event.resources) - _MOST_NAMES
    return shown if more <= 0 else f"{shown} and {more} more"
