"""All subjects, and what the process imports that theirs are forked from."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tools.crash_points.subject import Subject
from tools.crash_points.subjects.journal import JournalSubject
from tools.crash_points.subjects.marks import MarksSubject, RunnerSubject
from tools.crash_points.subjects.outbox import OutboxSubject
from tools.crash_points.subjects.server import ServerSubject
from tools.crash_points.subjects.store import NewStoreSubject, StoreSubject

SUBJECTS: Final[Mapping[str, Callable[[], Subject]]] = MappingProxyType(
    {
        StoreSubject.name: StoreSubject,
        NewStoreSubject.name: NewStoreSubject,
        OutboxSubject.name: OutboxSubject,
        JournalSubject.name: JournalSubject,
        MarksSubject.name: MarksSubject,
        RunnerSubject.name: RunnerSubject,
        ServerSubject.name: ServerSubject,
    }
)

PRELOADED: Final = (
    __name__,
    # What a server imports when it is wanted.
    "forewarned.cli.commands.serve",
    "forewarned.runtime.launch",
    "forewarned.runtime.single_process",
)
