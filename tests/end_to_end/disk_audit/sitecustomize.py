"""Tells what a program asks of the disk: files it opens, modules it imports, statements it runs.

Python runs this at the start of every process that has this folder on its path. What is told goes
to a file as it happens, a line each, since a process that polls is asked about while it runs. To
write a line is no event of the kind that is told.
"""

import functools
import os
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

KINDS = frozenset(
    {"glob", "import", "mmap", "open", "os", "pathlib", "shutil", "sqlite3", "subprocess"}
)
"""The events told, by the part of their names before the first full stop."""


def audit(report: str) -> None:
    """From now on and for good: nothing takes an audit hook away again."""
    out = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def tell(kind: str, what: object) -> None:
        line = " ".join(f"{os.getpid()} {kind} {what!r}".split())
        os.write(out, f"{line}\n".encode())

    def hear(event: str, args: tuple[object, ...]) -> None:
        if event.partition(".")[0] in KINDS:
            tell(event, args)

    statement = functools.partial(tell, "statement")
    sqlite3.connect = _traced(sqlite3.connect, statement)  # type: ignore[assignment]  # its overloads
    sys.addaudithook(hear)


def _traced(
    connect: Callable[..., sqlite3.Connection], tell: Callable[[str], None]
) -> Callable[..., sqlite3.Connection]:
    # The arguments are those of `sqlite3.connect`, whatever they are.
    def connect_traced(*args: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*args, **named)
        connection.set_trace_callback(tell)
        return connection

    return connect_traced


if "DISK_AUDIT" in os.environ:
    audit(os.environ["DISK_AUDIT"])
