"""What the agent has done, on disk: one line of JSON per fact, flushed before the next step.

Invariant: a step is written down before it is taken, so that no crash and no reboot makes the agent
take it twice.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

import msgspec

from forewarned.agent.model import HookOutcome, Plan, Progress, Sighting, Turn
from forewarned.security.files import flush_directory, open_private, replace_file

KEPT: Final = timedelta(days=30)
"""How long a finished event is remembered: a server may show an old document again."""


class Fact(msgspec.Struct, frozen=True, tag=True, tag_field="fact"):
    event_id: str
    at: datetime


class Seen(Fact, frozen=True):
    """The event, or something new about it, was seen in a document."""

    sighting: Sighting


class Planned(Fact, frozen=True):
    """A rule has matched. The plan stays, even if the file changes later."""

    sighting: Sighting
    plan: Plan
    boot: str = ""
    """The VM's boot id then; a different one later means that it has restarted."""


class Began(Fact, frozen=True):
    turn: Turn


class Noted(Fact, frozen=True):
    """A hook is about to change something that its undo must know about."""

    turn: Turn
    notes: dict[str, str]


class Ended(Fact, frozen=True):
    turn: Turn
    outcome: HookOutcome


class Reported(Fact, frozen=True):
    """This agent has reported to the others of the event that it is ready."""


class Approved(Fact, frozen=True):
    pass


class Gone(Fact, frozen=True):
    """The event has left the document."""


class Finished(Fact, frozen=True):
    pass


AnyFact = Seen | Planned | Began | Noted | Ended | Reported | Approved | Gone | Finished


class JournalError(Exception):
    """The journal can't be read or written. Without one no hook may run."""


def advance(progress: Progress | None, fact: AnyFact) -> Progress:
    """The progress of an event after one more fact."""
    if isinstance(fact, Planned):
        return Progress(sighting=fact.sighting, plan=fact.plan, boot=fact.boot)
    if progress is None:
        raise JournalError(f"the journal mentions event {fact.event_id} before its plan")
    match fact:
        case Seen():
            return replace(progress, sighting=fact.sighting)
        case Began():
            return replace(progress, begun=progress.begun | {fact.turn})
        case Noted():
            notes = {**progress.kept.get(fact.turn, {}), **fact.notes}
            return replace(progress, kept={**progress.kept, fact.turn: notes})
        case Ended():
            return replace(
                progress,
                begun=progress.begun - {fact.turn},
                outcomes={**progress.outcomes, fact.turn: fact.outcome},
            )
        case Reported():
            return replace(progress, reported_ready=True)
        case Approved():
            return replace(progress, approved=True)
        case Gone():
            return replace(progress, is_gone=True)
        case Finished():
            return replace(progress, is_finished=True)


class Journal:
    """Open it with `with`. The assembly locks the directory, so one agent at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._progress: dict[str, Progress] = {}

    @property
    def events(self) -> Mapping[str, Progress]:
        """By id, the oldest first; finished ones too, as long as they are remembered."""
        return self._progress

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            facts = list(self._read())
            self._progress = _fold(facts)
            self._compact(facts)
            self._file = open_private(self._path, os.O_WRONLY | os.O_APPEND)
            # Without its name on disk, a new file would be lost with its facts.
            flush_directory(self._path.parent)
        except OSError as error:
            raise JournalError(f"can't open the journal {self._path}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def write(self, fact: AnyFact) -> Progress:
        """Returns once the fact is on disk."""
        if self._file is None:
            raise JournalError(f"the journal {self._path} is not open")
        progress = advance(self._progress.get(fact.event_id), fact)
        line = msgspec.json.encode(fact) + b"\n"
        try:
            written = os.write(self._file, line)
            os.fsync(self._file)
        except OSError as error:
            raise JournalError(f"can't write the journal {self._path}: {error.strerror}") from error
        if written != len(line):
            raise JournalError(f"can't write the journal {self._path}: the disk is full")
        self._progress[fact.event_id] = progress
        return progress

    def _read(self) -> Iterator[AnyFact]:
        if not self._path.exists():
            return
        decoder = msgspec.json.Decoder(AnyFact)
        lines = self._path.read_bytes().split(b"\n")
        # Behind the last line's end is what a crash has cut short: it does not count.
        for number, line in enumerate(lines[:-1], 1):
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise JournalError(
                    f"line {number} of the journal {self._path} can't be read ({error}): if no"
                    " event is under way on this VM, move the file away and start the agent again"
                ) from error

    def _compact(self, facts: list[AnyFact]) -> None:
        """Drop what was finished long ago, and a last line that was cut short."""
        latest = max((fact.at for fact in facts), default=None)
        old = {
            fact.event_id
            for fact in facts
            if isinstance(fact, Finished) and latest is not None and fact.at < latest - KEPT
        }
        for event_id in old:
            del self._progress[event_id]
        kept = b"".join(msgspec.json.encode(f) + b"\n" for f in facts if f.event_id not in old)
        if not self._path.exists() or kept == self._path.read_bytes():
            return
        # Facts that are lost are hooks that run twice: the old file stays until the new is whole.
        replace_file(self._path, kept)


def _fold(facts: Iterable[AnyFact]) -> dict[str, Progress]:
    progress: dict[str, Progress] = {}
    for fact in facts:
        progress[fact.event_id] = advance(progress.get(fact.event_id), fact)
    return progress
