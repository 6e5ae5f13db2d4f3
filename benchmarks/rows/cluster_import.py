"""C8: the first start of a node, which imports the fleet, beside that of a server on SQLite."""

from collections.abc import Collection, Iterator

from benchmarks import nodes, product
from benchmarks.bench import Bench, many
from benchmarks.figures import Line, Spread, at_most, measured, ratios


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    vms = bench.scaled(100_000)
    # One instance fewer: the probe is a VM too.
    fleet = product.fleet_of(vms - 1, kind="grouped")
    bench.say(f"C8: importing {vms} VMs")
    shared, own = [], []
    with nodes.databases(bench) as databases:
        for number in range(min(3, bench.rounds)):
            with databases.serving(f"import{number}", fleet, names=("a",)) as [node]:
                shared.append(node.ready_after)
            folder = bench.scratch / f"import-sqlite-{number}"
            with product.serving(folder, fleet, *nodes.SERVICE, *bench.flags) as server:
                own.append(server.ready_after)
    yield measured(
        "C8",
        f"first start, which imports {many(vms, 'VMs')}: on PostgreSQL ÷ on SQLite",
        ratios(shared, own),
        unit="×",
        goal=at_most(3),
        note=f"PostgreSQL {Spread.of(shared).median:.1f} s, SQLite {Spread.of(own).median:.1f} s",
    )
