"""Where the processor time of an approval goes at one node and at three: what C2 does not tell.

python -m benchmarks.node_spent [APPROVALS]
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import machine, nodes, product, usage
from benchmarks.bench import Bench
from benchmarks.machine import Cores
from benchmarks.nodes import NAMES, Databases
from benchmarks.product import Product
from benchmarks.rows.cluster_approvals import approvals_at, shoot

IDLE: Final = 5.0
"""Seconds of watching what is spent while no VM approves: nodes look at their database."""
WRITES: Final = "transactions"
_WRITES: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
"""Only a transaction that writes has a number: looks at the database have none."""


@dataclass(frozen=True, slots=True)
class Spent:
    rate: float
    """approvals a second"""
    parts: Mapping[str, float]
    """microseconds of an approval, without what is spent while there is none"""
    group: float
    """approvals in each transaction that writes"""


def measure(databases: Databases, names: Sequence[str], count: int) -> Spent:
    database = f"spent{len(names)}"
    fleet = product.fleet_of(count, kind="alone")
    with databases.serving(database, fleet, names=names) as serving:
        approvals = approvals_at(serving, count)
        warm = count // 5
        shoot(approvals[:warm])
        usage.wait(IDLE)
        before = _totals(databases, serving)
        usage.wait(IDLE)
        between = _totals(databases, serving)
        seconds = shoot(approvals[warm:])
        after = _totals(databases, serving)
    done = count - warm
    each = {
        part: (after[part] - between[part] - (between[part] - before[part]) * seconds / IDLE) / done
        for part in before
    }
    del each[WRITES]
    group = done / (after[WRITES] - between[WRITES])
    return Spent(done / seconds, {part: spent * 1e6 for part, spent in each.items()}, group)


def _totals(databases: Databases, serving: Sequence[Product]) -> defaultdict[str, float]:
    """Processor seconds of each part up to now, and how many transactions have written."""
    totals: defaultdict[str, float] = defaultdict(float)
    for node in serving:
        for thread, (own, system) in usage.by_thread(node.pids).items():
            part = "event loop" if thread.number == 0 else "connections"
            totals[f"{thread.process}, {part}"] += own + system
    pair = databases.pair
    for name, server in (("primary", pair.primary), ("standby", pair.other)):
        totals[name] += usage.processor_seconds(usage.family(server.pid))
    [[totals[WRITES]]] = pair.primary.ask(_WRITES)
    return totals


def main(count: int) -> None:
    machine.allow_connections(30_000)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        bench = Bench(
            cores=Cores.of_this_machine(),
            rounds=1,
            seconds=1,
            shrink=1,
            scratch=Path(scratch),
            flags=(),
            say=print,
        )
        with nodes.databases(bench) as databases:
            one = measure(databases, NAMES[:1], count)
            three = measure(databases, NAMES, count)
    print(f"{'':24} {'one node':>10} {'three':>10}")
    for part in sorted({*one.parts, *three.parts}):
        found = (spent.parts.get(part, 0.0) for spent in (one, three))
        print(f"{part:24} " + " ".join(f"{each:7.0f} µs" for each in found))
    print(f"{'sum':24} {sum(one.parts.values()):7.0f} µs {sum(three.parts.values()):7.0f} µs")
    print(f"{'approvals a transaction':24} {one.group:10.1f} {three.group:10.1f}")
    print(f"{'approvals a second':24} {one.rate:10.0f} {three.rate:10.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
