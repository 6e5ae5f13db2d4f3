"""C1, C2: approvals at three nodes, beside the same SQL without them, and beside one node."""

import itertools
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks import exchange, nodes, product, shots, usage
from benchmarks.bench import Bench, many
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_least, measured, ratios
from benchmarks.nodes import Databases
from benchmarks.product import Product
from benchmarks.shots import Shot
from tests.postgresql.pauses import paused

CLIENTS: Final = 16
"""Connections of pgbench."""
CONNECTIONS: Final = 64
"""VMs that approve at a time."""

_SQL: Final = Path(__file__).parent.parent / "approval.sql"
_RATE: Final = re.compile(r"^tps = ([\d.]+) ", re.MULTILINE)


def measure(bench: Bench, wanted: Collection[str]) -> Iterator[Line]:
    each = bench.scaled(2_500)
    vms = each * (bench.rounds + 1)
    fleet = product.fleet_of(vms, kind="alone")
    bench.say(f"C1, C2: {vms} events to approve at three nodes, and at one")
    with (
        nodes.databases(bench) as databases,
        databases.serving("three", fleet) as three,
        databases.serving("one", fleet, names=("a",)) as one,
    ):
        approvals = {"three": approvals_at(three, vms), "one": approvals_at(one, vms)}
        databases.copy("three", "reference")
        rates: dict[str, list[float]] = {"three": [], "one": [], "pgbench": []}
        for number, at in enumerate(range(0, vms, each)):
            # The order changes from round to round, so that none has the quiet moments.
            for name in itertools.islice(itertools.cycle(rates), number % 3, number % 3 + 3):
                # Those that have nothing to do follow their store all the same.
                idle = [
                    pid
                    for group, theirs in (("three", three), ("one", one))
                    for node in theirs
                    for pid in node.pids
                    if group != name
                ]
                with paused(*idle):
                    if name == "pgbench":
                        rate = _pgbench(databases, bench.seconds, vms)
                    else:
                        rate = _approve(approvals[name][at : at + each])
                # Until those that were paused have looked at the store.
                usage.wait(1.5)
                if number:
                    rates[name].append(rate)
    medians = {name: Spread.of(seen).median for name, seen in rates.items()}
    if "C1" in wanted:
        yield measured(
            "C1",
            f"approvals/s at three nodes ÷ `pgbench -c {CLIENTS}` with the same SQL",
            ratios(rates["three"], rates["pgbench"]),
            unit="×",
            goal=at_least(0.5),
            note=f"three nodes {medians['three']:,.0f}/s, pgbench {medians['pgbench']:,.0f}/s;"
            f" {many(vms, 'scopes')}, a connection for each approval, {CONNECTIONS} at a time",
        )
    if "C2" in wanted:
        yield measured(
            "C2",
            "approvals/s at three nodes ÷ at one, on the same cores",
            ratios(rates["three"], rates["one"]),
            unit="×",
            goal=at_least(0.9),
            note=f"three nodes {medians['three']:,.0f}/s, one {medians['one']:,.0f}/s",
        )


def approvals_at(serving: Sequence[Product], vms: int) -> list[Shot]:
    """One for an event of each VM, to the nodes in turn."""
    ports = list(itertools.islice(itertools.cycle(node.metadata for node in serving), vms))
    addresses = product.addresses(vms)
    shoot([Shot(*where, exchange.poll()) for where in zip(ports, addresses, strict=True)])
    events: dict[str, str] = {}
    names = [f"many-{number}" for number in range(vms)]
    for event in nodes.schedule(serving[0], names, notice=lambda: "7d"):
        events[event["resources"][0]] = event["event_id"]
    return [
        Shot(port, address, exchange.own_approval(events[name]))
        for port, address, name in zip(ports, addresses, names, strict=True)
    ]


def shoot(volley: Sequence[Shot]) -> float:
    """Seconds until all are answered."""
    shot = shots.fire(volley, connections=CONNECTIONS)
    if shot.refused:
        raise BrokenExchangeError(f"nodes refused {shot.refused} of {len(volley)} requests")
    return shot.seconds


def _approve(volley: Sequence[Shot]) -> float:
    """Approvals a second."""
    return len(volley) / shoot(volley)


def _pgbench(databases: Databases, seconds: float, vms: int) -> float:
    """Transactions a second."""
    server = databases.pair.primary
    script = server.folder / _SQL.name
    shutil.copyfile(_SQL, script)
    said = server.run(
        "pgbench",
        *("--no-vacuum", "--protocol=extended", f"--client={CLIENTS}", "--jobs=1"),
        *(f"--time={max(1, round(seconds))}", f"--define=vms={vms}", f"--file={script}"),
        server.url("reference"),
    )
    if (found := _RATE.search(said)) is None:
        raise BrokenExchangeError(f"pgbench printed no rate: {said[-500:]}")
    return float(found[1])
