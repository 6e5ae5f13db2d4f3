"""C8, C9: a whole fleet comes to PostgreSQL, by the first start of a node or from SQLite."""

import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks import exchange, nodes, product
from benchmarks.bench import Bench, many
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.nodes import Databases
from benchmarks.product import Product
from benchmarks.rows.cluster_approvals import shoot
from benchmarks.shots import Shot

ROUNDS: Final = 3
"""At most: each imports the fleet again."""
SAMPLES: Final = 1_000
"""VMs that poll every node after a copy."""


def measure(bench: Bench, wanted: Collection[str]) -> Iterator[Line]:
    vms = bench.scaled(100_000)
    # One instance fewer: the probe is a VM too.
    fleet = product.fleet_of(vms - 1, kind="grouped")
    with nodes.databases(bench) as databases:
        if "C8" in wanted:
            yield _imported(bench, databases, fleet, vms)
        if "C9" in wanted:
            yield _copied(bench, databases, fleet, vms)


def _imported(bench: Bench, databases: Databases, fleet: str, vms: int) -> Line:
    bench.say(f"C8: importing {vms} VMs")
    shared, own = [], []
    for number in range(min(ROUNDS, bench.rounds)):
        with databases.serving(f"import{number}", fleet, names=("a",)) as [node]:
            shared.append(node.ready_after)
        folder = bench.scratch / f"import-sqlite-{number}"
        with product.serving(folder, fleet, *nodes.SERVICE, *bench.flags) as server:
            own.append(server.ready_after)
    return measured(
        "C8",
        f"first start, which imports {many(vms, 'VMs')}: on PostgreSQL ÷ on SQLite",
        ratios(shared, own),
        unit="×",
        goal=at_most(3),
        note=f"PostgreSQL {Spread.of(shared).median:.1f} s, SQLite {Spread.of(own).median:.1f} s",
    )


def _copied(bench: Bench, databases: Databases, fleet: str, vms: int) -> Line:
    bench.say(f"C9: copying {vms} VMs from SQLite")
    folder = bench.scratch / "copied-from"
    with product.serving(folder, fleet, *nodes.SERVICE, *bench.flags) as server:
        server.schedule([product.PROBE])
        shown = exchange.ask(server.metadata, exchange.poll()).body
    took, started = [], []
    for number in range(min(ROUNDS, bench.rounds)):
        database = f"copy{number}"
        databases.make(database)
        took.append(_copy(folder / "state", databases.pair.url(database)))
        # The fleet file is the same, so the nodes find that there is nothing to import.
        with databases.serving(database, fleet) as serving:
            started += [node.ready_after for node in serving]
            _check(serving, vms, shown)
    return measured(
        "C9",
        f"{many(vms, 'VMs')} copied from SQLite to PostgreSQL, and compared",
        Spread.of(took),
        unit="s",
        goal=None,
        note=f"each of three nodes answered {Spread.of(started).median:.1f} s after its start;"
        f" {min(SAMPLES, vms)} VMs read their documents at each",
    )


def _copy(source: Path, target: str) -> float:
    began = time.monotonic()
    command = [sys.executable, "-m", "forewarned", "store", "copy", str(source), target]
    copied = subprocess.run(command, capture_output=True, text=True, check=False)
    if copied.returncode:
        raise BrokenExchangeError(f"the copy failed: {copied.stderr}")
    return time.monotonic() - began


def _check(serving: Sequence[Product], vms: int, shown: bytes) -> None:
    """VMs see no difference, wherever they ask."""
    step = max(1, (vms - 1) // SAMPLES)
    for node in serving:
        if exchange.ask(node.metadata, exchange.poll()).body != shown:
            raise BrokenExchangeError("a node shows another document than SQLite did")
        addresses = product.addresses((vms - 1) // step, apart=step)
        shoot([Shot(node.metadata, address, exchange.poll()) for address in addresses])
