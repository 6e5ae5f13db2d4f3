"""Instants, spans, names and mistakes as people read them. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.config.mistakes import MistakesError
from forewarned.control.v1.wire import Event, Span

TYPE_STYLES: Final = {
    "Freeze": "cyan",
    "Reboot": "yellow",
    "Redeploy": "magenta",
    "Preempt": "red",
    "Terminate": "bold red",
}
STATUS_STYLES: Final = {
    "Scheduled": "yellow",
    "Started": "bold green",
    "Completed": "dim",
    "Canceled": "dim",
}
_SHORTEST_ID: Final = 8


def plain(text: str) -> str:
    """Text from elsewhere, which must not steer the terminal it is shown on."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def instant(when: datetime) -> str:
    """UTC, as every time the server tells."""
    return f"{when:%Y-%m-%d %H:%M:%S}"


def span(length: timedelta) -> str:
    """The two largest units, which is what a glance can take in: `14m59s`, `6d23h`."""
    if length >= timedelta(days=1):
        unit = timedelta(hours=1)
    elif length >= timedelta(hours=1):
        unit = timedelta(minutes=1)
    else:
        unit = timedelta(seconds=1)
    return format_duration(length // unit * unit)


def duration(span: Span | None) -> str:
    """All of it, as `/v1` writes it; empty for none."""
    return "" if span is None else format_duration(span.length)


def ahead(when: datetime, now: datetime) -> str:
    """`in 14m59s`, or `due` once it has come."""
    return f"in {span(when - now)}" if when > now else "due"


def ago(when: datetime, now: datetime) -> str:
    return f"{span(max(now - when, timedelta(0)))} ago"


def stand(event: Event, now: datetime) -> str:
    """How far the event has come, against the server's clock."""
    if event.ended_at is not None:
        return ago(event.ended_at, now)
    if event.started_at is not None:
        return f"for {span(max(now - event.started_at, timedelta(0)))}"
    if event.approval is not None:
        return "approved, held"
    return "" if event.not_before is None else ahead(event.not_before, now)


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """The first characters of each, as many as tell them apart."""
    whole = set(ids)
    length = _SHORTEST_ID
    while len({one[:length] for one in whole}) < len(whole):
        length += 1
    return {one: one[:length] for one in whole}


def listing(names: Iterable[str]) -> str:
    return ", ".join(plain(name) for name in names)


def kind(text: str) -> str:
    return text.replace("_", " ")


def mistakes_of(file: Path, error: MistakesError) -> tuple[str, ...]:
    """What is wrong with a file: a headline, then a line for each mistake."""
    if isinstance(error.__cause__, OSError):
        return (f"can't read {file}: {error.__cause__.strerror}",)
    return (f"{count(len(error.mistakes), 'mistake')} in {file}", *error.mistakes)


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
