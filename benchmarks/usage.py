"""What a server takes: processor time and memory of it and of every process it started.

Time is that of all threads, ended ones too. That of each thread comes from /proc in ticks of 10 ms:
what is measured with it must take much longer.
"""

import os
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

_TICK: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")


def is_readable() -> bool:
    return (_PROC / "self" / "stat").exists()


def family(pid: int) -> list[int]:
    """The process and its descendants, oldest first."""
    parents = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    found = [pid]
    for known in found:
        found.extend(child for child, parent in parents.items() if parent == known)
    return found


def processor_seconds(pids: list[int]) -> float:
    """What they have taken since they were started; nothing for those that are gone."""
    return sum(map(_clocked, pids))


def _clocked(pid: int) -> float:
    # The number of another process's clock, as `clock_getcpuclockid` makes it: to the nanosecond,
    # while /proc says ticks of 10 ms.
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


class Thread(NamedTuple):
    process: str
    """the module it runs, or what it was called with last"""
    number: int

    @property
    def name(self) -> str:
        """The first of a process runs its event loop; the others wait on the store."""
        return "loop" if self.number == 0 else f"store {self.number}"


def by_thread(pids: list[int]) -> dict[Thread, tuple[float, float]]:
    """Processor seconds of each thread: its own, and those the system spent for it."""
    spent = {}
    for pid in pids:
        for number, folder in enumerate(sorted((_PROC / str(pid) / "task").iterdir(), key=_number)):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            spent[Thread(role(pid), number)] = (int(fields[11]) / _TICK, int(fields[12]) / _TICK)
    return spent


def _number(folder: Path) -> int:
    return int(folder.name)


def role(pid: int) -> str:
    words = (_PROC / str(pid) / "cmdline").read_text().rstrip("\0").split("\0")
    return next(
        (word.rpartition(".")[2] for word in words if word.startswith("forewarned.")), "main"
    )


def memory(pids: list[int]) -> int:
    """Bytes held, pages that several of them share counted once."""
    return sum(_proportional_memory(pid) for pid in pids)


def wait_until_quiet(pids: list[int], *, within: float = 60) -> None:
    """Until the server has worked off what it was given: it takes less than 4 % of a core."""
    for _ in range(int(within / 0.5)):
        before = processor_seconds(pids)
        wait(0.5)
        if processor_seconds(pids) - before <= 0.02:
            return


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def _stat(pid: int) -> list[str]:
    """Fields from the third on (`man 5 proc`); none if the process is gone."""
    try:
        # The second field is the command in brackets, which may hold anything.
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _proportional_memory(pid: int) -> int:
    lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
