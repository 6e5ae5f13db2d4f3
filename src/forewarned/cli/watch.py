"""Changes as they happen: a table that keeps itself up to date, or a line for each."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import Final

import click
import msgspec
from rich.console import Group, RenderableType
from rich.live import Live

from forewarned.cli.connection import is_unknown_value, newer_server
from forewarned.cli.failures import (
    GET_ADMITTED,
    CommandError,
    RefusedError,
    ServerFailedError,
    UnreachableError,
)
from forewarned.cli.session import Session
from forewarned.cli.tables import event_table
from forewarned.cli.wording import instant, listing, plain
from forewarned.clock import monotonic
from forewarned.control.v1 import wire
from forewarned.core.transitions import action_in_words, cause_in_words

_RECENT: Final = 8
_SHORT_ID: Final = 8
_LOOK_AGAIN: Final = timedelta(seconds=5)
_FIRST_PAUSE: Final = timedelta(seconds=0.5)
_LONGEST_PAUSE: Final = timedelta(seconds=5)
_ENDS: Final = frozenset({"completed", "canceled"})


class SignedOut(wire.Farewell, frozen=True):
    """The last message to a watcher whose token is no longer valid."""


Message = wire.Hello | wire.Change | wire.Farewell

# What else there is by name is a change, or the last message.
_NAMED: Final[Mapping[str, tuple[type[Message], ...]]] = {
    "hello": (wire.Hello,),
    "signed_out": (SignedOut,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which events to show. What is None does not narrow."""

    vm: str | None = None
    scope: str | None = None
    type: str | None = None

    def event(self, event: wire.Event) -> bool:
        return (
            self._names(event.resources)
            and self.scope in {None, event.scope}
            and self.type in {None, event.type}
        )

    def change(self, change: wire.Change) -> bool:
        if change.event is not None:
            return self.event(change.event)
        return (
            self._names(change.resources) and self.scope in {None, change.scope} and not self.type
        )

    def _names(self, resources: tuple[str, ...]) -> bool:
        if self.vm is None:
            return True
        return self.vm.casefold() in {name.casefold() for name in resources}


@dataclass(slots=True)
class Watched:
    """What a watcher knows: the open events, and the last few changes."""

    wanted: Wanted
    events: dict[str, wire.Event] = field(default_factory=dict)
    recent: deque[wire.Change] = field(default_factory=lambda: deque(maxlen=_RECENT))
    farewell: str = "it gave no reason"

    def take(self, message: Message) -> bool:
        """Whether it is of interest here. Raises RefusedError once the token is no longer valid."""
        match message:
            case wire.Hello(events=events):
                self.events = {e.event_id: e for e in events if self.wanted.event(e)}
                return True
            case wire.Change(event=event):
                if not self.wanted.change(message):
                    return False
                self.recent.append(message)
                if event is not None and message.action in _ENDS:
                    self.events.pop(event.event_id, None)
                elif event is not None:
                    self.events[event.event_id] = event
                return True
            case SignedOut(message=reason):
                raise RefusedError(plain(reason), GET_ADMITTED, code="signed_out")
            case wire.Farewell(message=reason):
                self.farewell = reason
                return False

    def page(self, now: datetime) -> RenderableType:
        lines: list[RenderableType] = [f"{instant(now)} UTC"]
        # Copies: the thread that draws runs beside the one that takes messages.
        events, recent = list(self.events.values()), list(self.recent)
        lines.append(event_table(events, now=now) if events else "no open events")
        if recent:
            lines += ["", *(change_line(one, id_length=_SHORT_ID) for one in recent)]
        return Group(*lines)


def read_message(name: str, text: str) -> Message | None:
    """None for kinds of message this version does not know. Raises ServerFailedError."""
    for kind in _NAMED.get(name, (wire.Change, wire.Farewell)):
        try:
            return wire.decode(text, kind)
        except msgspec.MsgspecError as error:
            if is_unknown_value(error):
                raise newer_server(error) from error
    return None


def change_line(change: wire.Change, *, id_length: int | None = None) -> str:
    what = plain(action_in_words(change.action))
    if change.event is None:
        words = [instant(change.at), f"scope {plain(change.scope)}", what]
    else:
        words = [instant(change.at), change.event.type, what, change.event.event_id[:id_length]]
    if change.resources:
        words.append(listing(change.resources))
    if change.cause:
        words.append(f"({plain(cause_in_words(change.action, change.cause))})")
    return " ".join(words)


def open_line(event: wire.Event) -> str:
    began = event.created_at if event.started_at is None else event.started_at
    names = listing(event.resources)
    return f"{instant(began)} {event.type} {event.status.lower()} {event.event_id} {names}"


def watch_changes(session: Session, wanted: Wanted, *, patience: timedelta) -> None:
    """Until Ctrl-C, which is how watching is meant to end.

    A stream that ends is continued where it was, if the server is back within `patience`.
    """
    watched = Watched(wanted)
    try:
        if session.out.is_terminal and not session.is_json:
            _watch_live(session, watched, patience)
        else:
            _watch_lines(session, watched, patience)
    except KeyboardInterrupt:
        return
    raise UnreachableError(
        f"the server at {session.control.address} ended the stream: {plain(watched.farewell)}",
        "Start watching again when it is back.",
        code="stream_ended",
    )


def _messages(
    session: Session, watched: Watched, patience: timedelta
) -> Iterator[tuple[Message, str]]:
    """Over as many streams as it takes, each continuing the one before."""
    last_id, well_at, pause = "", monotonic(), _FIRST_PAUSE
    while True:
        try:
            for sent in session.control.changes(last_id):
                last_id = sent.id or last_id
                message = read_message(sent.event, sent.data)
                if not isinstance(message, wire.Hello | wire.Farewell):
                    well_at, pause = monotonic(), _FIRST_PAUSE
                if message is not None and watched.take(message):
                    yield message, sent.data
        except (UnreachableError, ServerFailedError):
            if not last_id or monotonic() + pause > well_at + patience:
                raise
        if monotonic() + pause > well_at + patience:
            return
        Event().wait(pause.total_seconds())
        pause = min(2 * pause, _LONGEST_PAUSE)


def _watch_lines(session: Session, watched: Watched, patience: timedelta) -> None:
    for message, text in _messages(session, watched, patience):
        if isinstance(message, wire.Hello) and message.lost is not None:
            click.echo(plain(message.lost), err=True)
        if session.is_json:
            click.echo(msgspec.json.format(text, indent=-1))
        elif isinstance(message, wire.Change):
            click.echo(change_line(message))
        elif isinstance(message, wire.Hello) and not message.resumed:
            for event in watched.events.values():
                click.echo(open_line(event))


def _watch_live(session: Session, watched: Watched, patience: timedelta) -> None:
    clock = _Reckoning(session)
    with Live(get_renderable=lambda: watched.page(clock.now()), console=session.out) as live:
        for _ in _messages(session, watched, patience):
            clock.look()
            live.refresh()


class _Reckoning:
    """The server's clock between two looks at it, so that time left counts down by itself."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.look()

    def look(self) -> None:
        self._seen = self._session.control.get("/v1/clock").read(wire.Clock)
        self._since = monotonic()

    def now(self) -> datetime:
        if self._elapsed() > _LOOK_AGAIN:
            # An operator may have moved the clock, which is no change of an event.
            with suppress(CommandError):
                self.look()
        return self._seen.now + self._elapsed() * self._seen.speed

    def _elapsed(self) -> timedelta:
        return monotonic() - self._since
