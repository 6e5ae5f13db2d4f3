"""Runs one program and records how it ended, whatever becomes of the actuator that started it.

A process of its own, which needs nothing but the standard library: it must start fast. It inherits
a lock that its actuator took before it was started, and holds it until the record is on disk. So
the process that gets the lock knows that no program runs, and finds on disk whether one was begun,
and how it ended. The program itself does not inherit the lock, or what it leaves running would hold
it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ORDER: Final = "order.json"
"""What is to be run, and for which task: written by the actuator."""
BEGUN: Final = "begun.json"
"""The key of the task whose program is about to be started, and its process group."""
RESULT: Final = "result.json"
"""How it ended."""
STDOUT: Final = "stdout"
STDERR: Final = "stderr"

_CANT_START: Final = 127


def run(folder: Path) -> int:
    order = json.loads((folder / ORDER).read_text())
    _write(folder / BEGUN, {"key": order["key"], "group": os.getpid()})
    with (folder / STDOUT).open("wb") as stdout, (folder / STDERR).open("wb") as stderr:
        try:
            exit_code = subprocess.call(order["argv"], cwd="/", stdout=stdout, stderr=stderr)
        except OSError as error:
            stderr.write(f"can't run {order['argv'][0]!r}: {error.strerror}".encode())
            exit_code = _CANT_START
    _write(folder / RESULT, {"key": order["key"], "exit_code": exit_code})
    return exit_code


def _write(path: Path, content: dict[str, object]) -> None:
    """In one step, and on disk when this returns."""
    draft = path.with_suffix(".draft")
    with draft.open("w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


if __name__ == "__main__":
    sys.exit(0 if run(Path(sys.argv[1])) == 0 else 1)
