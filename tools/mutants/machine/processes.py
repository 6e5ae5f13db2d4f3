"""Processes that are split off this one, each with limits to what it may take."""

import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

Tag = TypeVar("Tag")
Result = TypeVar("Result")

_MEMORY: Final = 4 * 2**30
_TO_BEGIN: Final = 30.0
"""Seconds of the processor until the work sets a limit of its own, as a process has one timer."""
_BETWEEN_LOOKS: Final = 0.5
_ASLEEP: Final = 5.0
"""Seconds after which a process that does nothing, and wants nothing of the processor, hangs."""
_TELLS: Final = Path("/proc/self/schedstat").exists()
"""Whether the system tells a process that sleeps from one that waits for a processor."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process ended without a result: it took too long, or died."""

    how: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The work could not be done, which says nothing about its subject."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[Tag, Result]):
    tag: Tag
    work: Callable[[], Result]
    seconds: float
    """What it usually takes; far more counts as hanging."""


@dataclass(slots=True, kw_only=True)
class _Running(Generic[Tag]):
    tag: Tag
    pid: int
    patience: float
    awake_at: float
    """When it was last seen to do something, or to wait for a processor."""
    spent: int | None = None

    def hangs(self) -> bool:
        now, spent = time.monotonic(), _spent_asleep(self.pid)
        if spent is None or spent != self.spent:
            self.awake_at, self.spent = now, spent
        return now - self.awake_at > self.patience


def messages(work: Callable[[Connection], None]) -> Iterator[Any]:
    """What the work sends, from a process of its own."""
    pid, pipe = _split_off(work)
    try:
        while True:
            yield pipe.recv()
    except EOFError:
        pass
    finally:
        pipe.close()
        _kill(pid)


def results(
    jobs: Iterable[Job[Tag, Result]], *, parallel: int
) -> Iterator[tuple[Tag, Result | Ended | Broken]]:
    """Each job's result, as they come."""
    waiting = iter(jobs)
    running: dict[Connection, _Running[Tag]] = {}
    while True:
        while len(running) < parallel and (job := next(waiting, None)) is not None:
            pid, pipe = _split_off(partial(_work, job))
            patience = _ASLEEP if _TELLS else 20 + 4 * job.seconds
            running[pipe] = _Running(
                tag=job.tag, pid=pid, patience=patience, awake_at=time.monotonic()
            )
        if not running:
            return
        ready = set(wait(list(running), timeout=_BETWEEN_LOOKS))
        for pipe, each in list(running.items()):
            if pipe in ready or each.hangs():
                del running[pipe]
                yield each.tag, _end(pipe, each)


def _split_off(work: Callable[[Connection], None]) -> tuple[int, Connection]:
    """Run it in a process of its own, without output; it ends when the work does."""
    reader, writer = Pipe(duplex=False)
    pid = os.fork()
    if pid:
        writer.close()
        return pid, reader
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        work(writer)
    finally:
        # What this process has inherited is not its own to clean up.
        os._exit(0)


def _work(job: Job[Tag, Result], writer: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    # Not to Python, which an edit may keep from looking after signals.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, _TO_BEGIN)
    result: Result | Broken
    try:
        result = job.work()
    except Exception:  # noqa: BLE001 - it is passed on
        result = Broken(traceback.format_exc())
    writer.send(result)


def _spent_asleep(pid: int) -> int | None:
    """Nanoseconds that it and its children have run, if none of them runs or waits to run.

    So a machine that has no time for a process does not make it one that hangs.
    """
    if not _TELLS:
        return 0
    spent = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            _, _, facts = (thread / "stat").read_text().rpartition(")")
            if facts.split()[0] in {"R", "D"}:
                return None
            spent += int((thread / "schedstat").read_text().split()[0])
            for child in (thread / "children").read_text().split():
                theirs = _spent_asleep(int(child))
                if theirs is None:
                    return None
                spent += theirs
    except (FileNotFoundError, ProcessLookupError):
        # It has just ended.
        return None
    return spent


def _end(pipe: Connection, running: _Running[Tag]) -> Result | Ended | Broken:
    try:
        if not pipe.poll():
            return Ended("it hangs")
        return pipe.recv()  # type: ignore[no-any-return]  # what `_work` has sent
    except EOFError:
        how = "it runs on" if _reap(running.pid) == signal.SIGPROF else "the process died"
        return Ended(how)
    finally:
        pipe.close()
        _kill(running.pid)


def _kill(pid: int) -> None:
    """With all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _reap(pid)


def _reap(pid: int) -> int:
    """The signal that ended it, if one did."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
