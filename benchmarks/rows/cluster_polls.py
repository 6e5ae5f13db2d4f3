"""C4, C5: what polls cost a node, and what they cost its database."""

import contextlib
import itertools
from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

from benchmarks import crowd, exchange, nodes, product, usage
from benchmarks.bench import Bench, many
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.nodes import Databases
from benchmarks.polling import Subject, alternate, cost, idle
from benchmarks.programs import MissingProgramError, find
from benchmarks.rows.cluster_approvals import shoot
from benchmarks.rows.polls import ANEW, KEPT, burst
from benchmarks.shots import Shot

WINDOW: Final = 10.0
"""Seconds of a count at least: sessions tell the statistics once a second what they did."""
IDLE: Final = 20.0
"""Seconds of watching a server that no VM polls."""
_TRANSACTIONS: Final = (
    "SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database WHERE datname = %s"
)


def measure(bench: Bench, wanted: Collection[str]) -> Iterator[Line]:
    with nodes.databases(bench) as databases:
        if "C5" in wanted:
            yield _transactions(bench, databases)
        if "C4" in wanted:
            if find("wrk") is None:
                raise MissingProgramError("needs wrk, which is not installed")
            yield from _cost(bench, databases)


def _cost(bench: Bench, databases: Databases) -> Iterator[Line]:
    fleet = product.fleet_of(bench.scaled(100_000) - 1, kind="grouped")
    bench.say("C4: a poll at a node, and at a server on SQLite")
    with (
        databases.serving("polls", fleet, names=("a",), prefix=bench.cores.serving) as [node],
        bench.serving("polls-sqlite", fleet, *nodes.SERVICE) as server,
        bench.serving("polls-sqlite-twin", fleet, *nodes.SERVICE) as second,
    ):
        shared = Subject("PostgreSQL", node.pids, node.metadata)
        own = Subject("SQLite", server.pids, server.metadata)
        # Two processes that run the same code differ as well, by where their memory happens to be.
        twin = Subject("another on SQLite", second.pids, second.metadata)
        subjects = [shared, own, twin]
        unpolled = {each.name: idle(each, IDLE) for each in subjects}
        yield measured(
            "C4",
            "processor time of a node that no VM polls, for following its database",
            Spread.of([unpolled[shared.name] * 100]),
            unit="% of a core",
        )
        for headers, where in ((KEPT, "keep-alive poll"), (ANEW, "poll on a new connection")):
            spent = partial(cost, load=partial(burst, bench, headers), idle=unpolled)
            costs = alternate(subjects, bench.rounds, spent)
            medians = {name: Spread.of(each).median for name, each in costs.items()}
            yield measured(
                "C4",
                f"processor time of a {where}, on PostgreSQL ÷ on SQLite",
                ratios(costs[shared.name], costs[own.name]),
                unit="×",
                goal=at_most(1.02),
                note=", ".join(f"{name} {each:.1f} µs" for name, each in medians.items()),
            )
            yield measured(
                "C4",
                f"processor time of a {where}, on SQLite ÷ on another SQLite",
                ratios(costs[twin.name], costs[own.name]),
                unit="×",
            )


def _transactions(bench: Bench, databases: Databases) -> Line:
    vms = bench.scaled(10_000)
    bench.say(f"C5: transactions of three nodes while {vms} VMs poll, and while none does")
    addresses = product.addresses(vms)
    seconds = max(WINDOW, bench.seconds)
    busy, idle = [], []
    with (
        databases.serving("idle", product.fleet_of(vms, kind="alone")) as serving,
        contextlib.ExitStack() as stack,
    ):
        ports = itertools.cycle(node.metadata for node in serving)
        # A node lets a VM wait at its first poll, and the crowd's polls come one after another.
        shoot([Shot(next(ports), address, exchange.poll()) for address in addresses])
        crowds = [
            stack.enter_context(
                crowd.gathered(
                    bench.scratch / f"idle-crowd-{number}",
                    node.metadata,
                    addresses[number :: len(serving)],
                    prefix=(),
                )
            )
            for number, node in enumerate(serving)
        ]
        for number in range(min(3, bench.rounds) + 1):
            before = _count(databases)
            for each in crowds:
                each.begin_polling(seconds)
            answered = sum(each.hear()["answered"] for each in crowds)
            polling = _count(databases) - before
            if answered < 0.9 * vms * seconds:
                raise BrokenExchangeError(
                    f"only {answered} of {vms * seconds:.0f} polls were answered in time"
                )
            before = _count(databases)
            usage.wait(seconds)
            if number:
                busy.append(float(polling))
                idle.append(float(_count(databases) - before))
    return measured(
        "C5",
        f"transactions/s of three nodes: {many(vms, 'VMs')} poll once a second ÷ none does",
        ratios(busy, idle),
        unit="×",
        goal=at_most(1.05),
        note=f"{Spread.of(busy).median / seconds:.0f}/s against"
        f" {Spread.of(idle).median / seconds:.0f}/s",
    )


def _count(databases: Databases) -> int:
    # Until sessions have told of what they did so far.
    usage.wait(1.5)
    [[count]] = databases.pair.primary.ask(_TRANSACTIONS, "idle")
    return int(count)
