"""Notes when functions of a program are called. `benchmarks.journey` has its server do so.

Python runs this at the start of every process that has this folder on its path. What has been noted
is written at the process's end: while it is measured, a note is all that is made.
"""

import atexit
import functools
import json
import os
import pkgutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def note_calls(names: list[str]) -> list[tuple[str, float]]:
    """Instants at which functions, each named as `module:Class.function`, were called."""
    noted: list[tuple[str, float]] = []
    for name in names:
        owner, _, attribute = name.rpartition(".")
        holder = pkgutil.resolve_name(owner)
        setattr(holder, attribute, _noting(name, getattr(holder, attribute), noted))
    return noted


def _noting(
    name: str, call: Callable[..., Any], noted: list[tuple[str, float]]
) -> Callable[..., Any]:
    @functools.wraps(call)
    def noting(*args: object, **named: object) -> object:
        noted.append((name, time.perf_counter()))
        return call(*args, **named)

    return noting


def _begin(wanted: dict[str, list[str]], folder: Path) -> None:
    program = next((module for module in wanted if module in sys.orig_argv), None)
    if program is not None:
        noted = note_calls(wanted[program])
        file = folder / f"{program}.marks"
        atexit.register(lambda: file.write_text(json.dumps(noted)))


if "NOTED_CALLS" in os.environ:
    _begin(json.loads(os.environ["NOTED_CALLS"]), Path(os.environ["NOTED_IN"]))
