"""All processes that a handler has started, however they were started.

Invariant: a signal reaches no other process. What is forked while it is being sent may be missed,
so what is to be ended is sent SIGKILL until it has ended.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

_PR_SET_CHILD_SUBREAPER: Final = 36
_ALL: Final = -1
_LOOKS: Final = 20
"""How often new descendants are looked for at most, where each look finds some."""


class ProcessTree(Protocol):
    def send(self, number: int) -> None:
        """A signal to every process of the handler, and to none besides."""


class NamespaceTree:
    """All processes of a PID namespace, sent to by the first of them."""

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(_ALL, number)


class AdoptedTree:
    """All descendants of this process, which is to `adopt_orphans` first. Linux only."""

    def send(self, number: int) -> None:
        found = self._found(number)
        for pid in found:
            _send(pid, number)

    def _found(self, number: int) -> set[int]:
        seen: set[int] = set()
        for _ in range(_LOOKS if number == signal.SIGKILL else 1):
            fresh = set(_descendants(os.getpid())) - seen
            if not fresh:
                break
            seen |= fresh
            if number == signal.SIGKILL:
                # What stands still forks no more.
                for pid in fresh:
                    _send(pid, signal.SIGSTOP)
        return seen


class SessionTree:
    """The processes that stayed in the session of the one that was started: all that is known."""

    def __init__(self) -> None:
        self.leaders: set[int] = set()

    def send(self, number: int) -> None:
        for leader in self.leaders:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, number)


def adopt_orphans() -> None:
    """From now on, processes whose parents end become children of this one."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(of: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := _parent(folder)) is not None:
            children.setdefault(parent, []).append(int(folder.name))
    next_ones = children.get(of, [])
    while next_ones:
        pid = next_ones.pop()
        yield pid
        next_ones += children.get(pid, [])


def _parent(folder: Path) -> int | None:
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # After the name, which is in parentheses and may hold anything: the state, then the parent.
    return int(text.rpartition(")")[2].split()[1])
