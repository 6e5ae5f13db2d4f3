"""The machine: which core serves, which one loads, and how it calls itself."""

import contextlib
import os
import platform
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Cores:
    """Servers on one core, load on another, so that neither steals the other's time."""

    server: int | None
    """None: there is one core only, and all share it"""
    load: int | None

    @classmethod
    def of_this_machine(cls) -> Self:
        allowed = sorted(os.sched_getaffinity(0))
        return cls(allowed[0], allowed[-1]) if len(allowed) > 1 else cls(None, None)

    @property
    def serving(self) -> list[str]:
        return [] if self.server is None else ["taskset", "-c", str(self.server)]

    @property
    def loading(self) -> list[str]:
        return [] if self.load is None else ["taskset", "-c", str(self.load)]

    def load_from_here(self) -> None:
        """This program makes load too: keep it, and what it starts by default, off the servers."""
        if self.load is not None:
            os.sched_setaffinity(0, {self.load})

    @override
    def __str__(self) -> str:
        if self.server is None:
            return "unpinned: there is one core only"
        return f"servers on core {self.server}, load on core {self.load}"


def allow_connections(wanted: int) -> None:
    """Raise the limit on open files, for this process and what it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def first_in_the_queue() -> Iterator[None]:
    """Ahead of all other work on a shared machine, as far as this user may.

    Linux shares a core among sessions first, and only then among processes by their niceness.
    """
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    session = Path("/proc/self/autogroup")
    before = session.read_text().rpartition(" ")[2].strip() if session.exists() else None
    os.setpriority(os.PRIO_PROCESS, 0, -15)
    if before is not None:
        session.write_text("-15")
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        if before is not None:
            session.write_text(before)


def description() -> dict[str, str]:
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def python_series() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
