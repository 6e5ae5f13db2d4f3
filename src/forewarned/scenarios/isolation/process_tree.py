"""All processes that a handler has started, however they were started.

Invariant: a signal reaches no other process. What is forked while it is being sent may be missed,
so what is to be ended is sent SIGKILL until it has ended.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

_PR_SET_CHILD_SUBREAPER: Final = 36
_ALL: Final = -1
_LOOKS: Final = 100
"""How often new descendants are looked for at most, where each look finds some."""
_KERNEL: Final = 0
"""The parent of the first processes."""
_DEAD: Final = ("Z", "X")


class ProcessTree(Protocol):
    def send(self, number: int) -> None:
        """A signal to every process of the handler, and to none besides."""

    def kill(self, reap: Callable[[], object]) -> None:
        """SIGKILL to all of them. It may take several looks, and calls `reap` in between."""


class NamespaceTree:
    """All processes of a PID namespace, sent to by the first of them."""

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(_ALL, number)

    def kill(self, reap: Callable[[], object]) -> None:  # noqa: ARG002
        # One system call, in which none of them can fork.
        self.send(signal.SIGKILL)


class AdoptedTree:
    """All descendants of this process, which is to `adopt_orphans` first. Linux only."""

    def send(self, number: int) -> None:
        for each in self.living():
            _send(each, number)

    def kill(self, reap: Callable[[], object]) -> None:
        seen: set[int] = set()
        look = _Look()
        for _ in range(_LOOKS):
            found = look.descendants()
            # A group in one system call, in which none of it can fork. Its session is that of a
            # descendant, so all of it are descendants. One that has died tells of it, too.
            for group in {each.group for each in found} - {os.getpgrp()}:
                _send_group(group, signal.SIGKILL)
            for each in found:
                if not each.is_dead:
                    _send(each.pid, signal.SIGKILL)
            # Where one has lived and died since the last look, there may be its children.
            if seen.issuperset(each.pid for each in found):
                return
            seen.update(each.pid for each in found)
            # Else the dead fill the process table.
            reap()

    def living(self) -> set[int]:
        return {each.pid for each in _Look().descendants() if not each.is_dead}


class SessionTree:
    """The processes that stayed in the session of the one that was started: all that is known."""

    def __init__(self) -> None:
        self.leaders: set[int] = set()

    def send(self, number: int) -> None:
        for leader in self.leaders:
            _send_group(leader, number)

    def kill(self, reap: Callable[[], object]) -> None:  # noqa: ARG002
        self.send(signal.SIGKILL)


def adopt_orphans() -> None:
    """From now on, processes whose parents end become children of this one."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _send_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    group: int
    is_dead: bool
    """And not reaped yet."""


class _Look:
    """At all processes the first time, and then only at those that are not strangers.

    So that the next looks are quick: a process may fork and exit in less than a millisecond.
    """

    def __init__(self) -> None:
        self._own = os.getpid()
        self._strangers = {_KERNEL}

    def descendants(self) -> list[_Process]:
        children: dict[int, list[_Process]] = {}
        for process in _processes(besides={self._own, *self._strangers}):
            children.setdefault(process.parent, []).append(process)
        found = list(_below([self._own], children))
        # One whose parent has just gone is in neither: it may be adopted by now.
        self._strangers |= {each.pid for each in _below(self._strangers, children)}
        return found


def _below(roots: Iterable[int], children: dict[int, list[_Process]]) -> Iterator[_Process]:
    next_ones = [each for root in roots for each in children.get(root, ())]
    while next_ones:
        process = next_ones.pop()
        yield process
        next_ones += children.get(process.pid, ())


def _processes(*, besides: Collection[int]) -> Iterator[_Process]:
    # The newest, which are the most likely to be gone soon, first.
    names = os.listdir("/proc")  # noqa: PTH208  # in a third of the time of iterdir
    for pid in sorted((int(name) for name in names if name.isdigit()), reverse=True):
        if pid not in besides and (process := _process(pid)) is not None:
            yield process


def _process(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # After the name, which is in parentheses and may hold anything: see proc(5).
    state, parent, group, *rest = text.rpartition(")")[2].split()
    threads = int(rest[14])
    # A process whose first thread has ended looks dead while others of its threads live on.
    is_dead = state in _DEAD and threads <= 1
    return _Process(pid, int(parent), int(group), is_dead)
