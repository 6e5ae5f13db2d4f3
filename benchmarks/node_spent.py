"""Where processor time goes at one node and at three: what C2 and C6 don't tell.

python -m benchmarks.node_spent approvals [APPROVALS]
python -m benchmarks.node_spent due [EVENTS]
"""

import sys
import tempfile
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
from benchmarks.rows.cluster_due import come, fleet_of_spots

IDLE: Final = 5.0
"""Seconds of watching what is spent while no VM approves: nodes look at their database."""
_WRITES: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
"""Only a transaction that writes has a number: looks at the database have none."""


@dataclass(frozen=True, slots=True)
class Spent:
    parts: Mapping[str, float]
    """microseconds for each approval, or event"""
    others: Mapping[str, float]
    """What else was counted."""


def of_approvals(databases: Databases, names: Sequence[str], count: int) -> Spent:
    """Without what is spent while there is none."""
    fleet = product.fleet_of(count, kind="alone")
    with databases.serving(f"spent{len(names)}", fleet, names=names) as serving:
        approvals = approvals_at(serving, count)
        warm = count // 5
        shoot(approvals[:warm])
        usage.wait(IDLE)
        before = _totals(databases, serving)
        usage.wait(IDLE)
        between = _totals(databases, serving)
        written = _written(databases)
        seconds = shoot(approvals[warm:])
        after = _totals(databases, serving)
        written = _written(databases) - written
    done = count - warm
    each = {
        part: (after[part] - between[part] - (between[part] - before[part]) * seconds / IDLE) / done
        for part in before
    }
    return Spent(
        {part: spent * 1e6 for part, spent in each.items()},
        {"approvals a transaction": done / written, "approvals a second": done / seconds},
    )


def of_events_due(databases: Databases, names: Sequence[str], count: int) -> Spent:
    """From the instant at which all are due until all VMs have looked."""
    with databases.serving(f"due{len(names)}", fleet_of_spots(count), names=names) as serving:
        seconds, spent = come(databases.bench, serving, count, databases)
    return Spent(
        {part: each * 1e6 / count for part, each in spent.items()},
        {"seconds until the last is visible": seconds},
    )


def _totals(databases: Databases, serving: Sequence[Product]) -> dict[str, float]:
    """Processor seconds of each part up to now."""
    return {**nodes.processor_seconds(serving), **databases.processor_seconds()}


def _written(databases: Databases) -> int:
    [[count]] = databases.pair.primary.ask(_WRITES)
    return int(count)


MEASURES: Final = {"approvals": of_approvals, "due": of_events_due}


def main(what: str, count: int) -> None:
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
            one, three = (MEASURES[what](databases, names, count) for names in (NAMES[:1], NAMES))
    print(f"{'':34} {'one node':>10} {'three':>10}")
    for part in sorted({*one.parts, *three.parts}):
        found = (spent.parts.get(part, 0.0) for spent in (one, three))
        print(f"{part:34} " + " ".join(f"{each:7.0f} µs" for each in found))
    print(f"{'sum':34} {sum(one.parts.values()):7.0f} µs {sum(three.parts.values()):7.0f} µs")
    for name, number in one.others.items():
        print(f"{name:34} {number:10.1f} {three.others[name]:10.1f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
