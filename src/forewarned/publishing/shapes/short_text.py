"""A message for people, where they have no template of their own: a title, and a few lines."""

from datetime import UTC, datetime
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.core.model import TIME
from forewarned.core.transitions import cause_in_words
from forewarned.service.subscriptions.model import Message, PublishedStatus

_MOST_NAMES: Final = 5
_CONTROL: Final = dict.fromkeys([*range(32), 127], " ")


def title(message: Message) -> str:
    """`Reboot scheduled: web_0, web_1`"""
    return f"{message.event.type} {message.status.lower()}: {_names(message)}"


def body(message: Message) -> str:
    """What an event says is put into one line, whatever it holds (S14)."""
    event = message.event
    lines = [event.description.translate(_CONTROL).strip()]
    if message.status in {PublishedStatus.SCHEDULED, PublishedStatus.APPROVED}:
        if event.not_before is not None:
            lines.append(f"Not before {_time(event.not_before)}.")
        if event.duration is not None:
            lines.append(f"Expected to take {format_duration(event.duration)}.")
    why = ""
    if message.status is PublishedStatus.STARTED and message.cause:
        why = f", {cause_in_words('started', message.cause)}"
    elif message.cause:
        lines.append(f"Cause: {message.cause.translate(_CONTROL)}.")
    by = "" if message.actor == TIME.name else f"by {message.actor.translate(_CONTROL)}, "
    lines.append(f"{message.status} {by}at {_time(message.at)}{why}.")
    lines.append(f"Event {event.id}")
    return "\n".join(filter(None, lines))


def _names(message: Message) -> str:
    names = message.vms or message.event.resources
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
