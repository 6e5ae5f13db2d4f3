"""A process under strace, which notes its system calls and makes one of them fail.

strace counts the calls of each thread apart. So a call is addressed by the file that it concerns,
which one thread writes, and by its number among those of this thread. A file whose name is another
each time is addressed by the number among all calls of this kind.
"""

import ctypes
import logging
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Final

from typing_extensions import override

from tools.crash_points.subject import Tell, refusals

CALLS: Final = (
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "truncate", "fallocate"),
    *("fsync", "fdatasync", "sync_file_range"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat"),
    *("link", "linkat"),
    *("open", "openat", "creat"),
)
"""All that change a file or a folder, or wait for the disk."""
_OPENS: Final = frozenset({"open", "openat"})
"""They count only where they may create the file, or empty it."""
_CREATES: Final = re.compile(r"\bO_(CREAT|TRUNC)\b")

PATIENCE: Final = 60.0
_CALL: Final = re.compile(r"(?P<thread>\d+) +(?P<call>[a-z]\w+)\((?P<arguments>.*)")
_BY_DESCRIPTOR: Final = re.compile(r"\d+<(?P<path>/[^>]*)>")
_BY_NAME: Final = re.compile(r'[^"]*"(?P<path>/[^"]*)"')
_DRAFT: Final = re.compile(r"\.[0-9a-f]{8}$")
_SET_PTRACER: Final = 0x59616D61
_ANY_PROCESS: Final = -1


class Kind(StrEnum):
    KILL = "kill"
    FULL = "ENOSPC"
    """From that call on, as a disk stays full. Only that call, if later ones may be to read."""
    BROKEN = "EIO"
    """Once."""
    BROKEN_AND_KILL = "EIO+kill"
    """As soon as it has told what went wrong."""

    def injection(self, point: "Point") -> str:
        """Into the call at this point, as strace wants to be told."""
        what = "signal=KILL" if self is Kind.KILL else f"error={self.partition('+')[0]}"
        # Without a path, all that the thread opens would count.
        lasts = self is Kind.FULL and (point.path or point.call not in _OPENS)
        return f"{what}:when={point.number}{'+' if lasts else ''}"

    @property
    def dies_when_refused(self) -> bool:
        return self is Kind.BROKEN_AND_KILL


@dataclass(frozen=True, slots=True, order=True)
class Point:
    call: str
    path: str
    """Relative to the folder; empty for one that has another name each time."""
    number: int

    @override
    def __str__(self) -> str:
        return f"{self.call} {self.number} of {self.path or 'any file'}"


@dataclass(frozen=True, slots=True)
class Injection:
    point: Point
    kind: Kind


class TracedLife:
    """Made by `Tracer.start`."""

    def __init__(self, folder: Path, injection: Injection | None, *, patience: float) -> None:
        self._patience = patience
        self._log = folder.with_name("strace")
        self._folder = folder
        self._injection = injection
        self._buffered = b""
        self.dies_when_refused = injection is not None and injection.kind.dies_when_refused
        self.exit_code: int | None = None

    def begin(self, context: ForkServerContext, live: Callable[[Path, Tell], None]) -> None:
        self._ours, theirs = socket.socketpair()
        self._process = context.Process(
            target=_live,
            args=(live, self._folder, theirs),
            kwargs={"dies_when_refused": self.dies_when_refused},
        )
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        # The first has to wait until all is imported.
        self._ours.settimeout(PATIENCE)
        assert self._ours.recv(1) == b"?"
        self._strace = subprocess.Popen(
            ["strace", *self._options(), "-p", str(self.pid)], stderr=subprocess.PIPE, text=True
        )
        assert self._strace.stderr is not None
        if "attached" not in (said := self._strace.stderr.readline()):
            self._process.kill()
            raise NoTracingError(said.strip())
        self._ours.send(b"!")
        self._ours.settimeout(self._patience)

    def _options(self) -> Iterator[str]:
        yield from ("-f", "-y", "-s", "0", "-o", str(self._log), "-e", "signal=none")
        if self._injection is None:
            yield from ("-e", "trace=" + ",".join(f"?{call}" for call in CALLS))
            return
        point = self._injection.point
        yield from ("-e", f"trace={point.call}")
        what = self._injection.kind.injection(point)
        yield from ("-e", f"inject={point.call}:{what}")
        if point.path:
            yield from ("-P", str(self._folder / point.path))

    def lines(self) -> list[str]:
        """Of more than was told before; empty when it has ended, or says nothing for too long."""
        *whole, self._buffered = self._buffered.split(b"\n")
        while not whole:
            with suppress(ConnectionResetError, TimeoutError):
                if more := self._ours.recv(1 << 16):
                    *whole, self._buffered = (self._buffered + more).split(b"\n")
                    continue
            break
        return [line.decode() for line in whole]

    def told(self) -> list[str]:
        told: list[str] = []
        while lines := self.lines():
            told += lines
        return told

    def end(self) -> None:
        """Wait for it, and for all that it has started."""
        self._process.join(self._patience)
        self.exit_code = self._process.exitcode
        self._ours.close()
        if self.exit_code is None:
            self._process.kill()
        try:
            self._strace.communicate(timeout=self._patience)
        except subprocess.TimeoutExpired:
            self._strace.kill()
            self._strace.communicate()
        self._process.join()
        self._process.close()

    @property
    def was_reached(self) -> bool:
        """Whether the call in question was made. After a kill in front of it, it has no result."""
        log = self._log.read_text(errors="replace")
        return "(INJECTED)" in log or "= ?\n" in log

    def points(self) -> list[Point]:
        """Every call that concerns a file in the folder, in the order of the run."""
        counts: Counter[tuple[str, ...]] = Counter()
        found: list[Point] = []
        for line in self._log.read_text(errors="replace").splitlines():
            made = _CALL.match(line)
            if made is None:
                continue
            thread, call = made["thread"], made["call"]
            named = _BY_DESCRIPTOR.match(made["arguments"]) or _BY_NAME.match(made["arguments"])
            path = "" if named is None else named["path"].removesuffix(" (deleted)")
            counts[thread, call] += 1
            counts[thread, call, path] += 1
            if not Path(path).is_relative_to(self._folder):
                continue
            if call in _OPENS and not _CREATES.search(made["arguments"]):
                continue
            relative = str(Path(path).relative_to(self._folder))
            if _DRAFT.search(relative):
                found.append(Point(call, "", counts[thread, call]))
            else:
                found.append(Point(call, relative, counts[thread, call, path]))
        return list(dict.fromkeys(found))


class NoTracingError(Exception):
    """strace can't be used here."""


class Tracer:
    def __init__(self, modules: Sequence[str], *, patience: float = PATIENCE) -> None:
        """`modules` are imported once, in the process that all others are forked from.

        `patience` is how many seconds a process may be silent, or take to end.
        """
        self._patience = patience
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(modules))

    def start(
        self,
        live: Callable[[Path, Tell], None],
        folder: Path,
        injection: Injection | None = None,
    ) -> TracedLife:
        """Raises NoTracingError."""
        life = TracedLife(folder, injection, patience=self._patience)
        life.begin(self._context, live)
        return life


def _live(
    live: Callable[[Path, Tell], None],
    folder: Path,
    told: socket.socket,
    *,
    dies_when_refused: bool,
) -> None:
    """In the process that is killed."""
    # Where a kernel lets only parents trace, strace is none.
    ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY_PROCESS)

    def tell(line: str) -> None:
        # `send` is none of the calls that are made to fail.
        told.send(f"{' '.join(line.split())}\n".encode())
        if dies_when_refused and refusals([line]):
            os.kill(os.getpid(), signal.SIGKILL)

    # What goes wrong is told. Lines of a log would be calls that fail, too.
    logging.getLogger().addHandler(logging.NullHandler())
    told.send(b"?")
    told.recv(1)
    try:
        live(folder, tell)
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is judged
        tell(f"unclear {type(error).__name__}: {error}")
        sys.exit(1)
