"""The budget: instructions a poll takes, which no noise of the machine can move.

Counted by valgrind on the real server, over N polls and then over 2 N: the difference is what N
polls take, whatever else goes on. Instructions of the kernel are not counted.
"""

import json
import re
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from benchmarks import exchange, machine, product, programs, volley
from benchmarks.bench import Bench
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured
from benchmarks.product import Product

BUDGET: Final = Path(__file__).parent.parent / "budget.json"
POLLS: Final = 5_000

_TOTALS: Final = re.compile(r"^totals: (\d+)", re.MULTILINE)


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    folder = bench.scratch / "instructions"
    valgrind = [
        programs.need("valgrind"),
        "--tool=callgrind",
        # Pollers may be processes of their own.
        "--trace-children=yes",
        f"--callgrind-out-file={folder}/count.%p",
    ]
    bench.say("instructions: a server under valgrind, which is slow to start")
    with product.serving(
        folder,
        product.fleet_of(0, kind="grouped"),
        *bench.flags,
        prefix=[*bench.cores.serving, *valgrind],
        # Where strings hash differently, dictionaries are walked differently.
        environment={"PYTHONHASHSEED": "0"},
    ) as server:
        server.schedule([product.PROBE])
        _count(server, folder, POLLS)
        rounds = [
            (_count(server, folder, 2 * POLLS) - _count(server, folder, POLLS)) / POLLS
            for _ in range(3)
        ]
    yield _line(Spread.of(rounds))


def _line(spread: Spread) -> Line:
    budgets = json.loads(BUDGET.read_text())
    budget = budgets["instructions_a_poll"].get(machine.python_series())
    what = "instructions per keep-alive poll, without the kernel's"
    if budget is None:
        note = f"budget.json has no budget for Python {machine.python_series()}"
        return measured("budget", what, spread, unit="", note=note)
    goal = at_most(round(budget * (1 + budgets["tolerance"])))
    note = f"budget {budget:,} and {budgets['tolerance']:.0%}"
    return measured("budget", what, spread, unit="", goal=goal, note=note)


def _count(server: Product, folder: Path, polls: int) -> int:
    """Instructions of all its processes from the last count to the end of so many polls."""
    shot = volley.fire(server.metadata, [exchange.poll()] * polls, connections=1)
    if shot.refused:
        raise BrokenExchangeError(f"{shot.refused} polls were refused")
    total = 0
    for pid in server.pids:
        before = set(folder.glob(f"count.{pid}.*"))
        subprocess.run(
            [programs.need("callgrind_control"), "--dump", str(pid)],
            capture_output=True,
            timeout=120,
            check=True,
        )
        for dump in set(folder.glob(f"count.{pid}.*")) - before:
            total += sum(int(count) for count in _TOTALS.findall(dump.read_text()))
    return total
