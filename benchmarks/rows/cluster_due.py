"""C6, C7: many events whose time comes at one instant, at three nodes, and with one of them paused.

Time is real here, so events are scheduled for an instant ahead: VMs are Spot VMs, whose Preempt
needs 30 seconds' notice only.
"""

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from benchmarks import crowd, exchange, nodes, product, usage
from benchmarks.bench import Bench, many
from benchmarks.crowd import Crowd
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.nodes import AT_ONCE, Databases
from benchmarks.product import Product
from benchmarks.rows.cluster_approvals import shoot
from benchmarks.shots import Shot
from tests.postgresql.pauses import paused

ROUNDS: Final = 3
"""At most: each is a minute or two of waiting."""
NOTICE: Final = 31.0
"""Seconds that the last one needs at least."""
LEAD: Final = 40.0
"""Seconds before the instant at which VMs come for their long polls, which last 60 at most."""


@dataclass(frozen=True, slots=True)
class Served:
    """VMs of one node."""

    crowd: Crowd
    vms: int


def measure(bench: Bench, wanted: Collection[str]) -> Iterator[Line]:
    if "C6" in wanted:
        yield _together(bench)
    if "C7" in wanted:
        yield _with_one_paused(bench)


def _together(bench: Bench) -> Line:
    vms = bench.scaled(10_000)
    bench.say(f"C6: {vms} events due at once, at three nodes and at a server on SQLite")
    fleet = fleet_of_spots(vms)
    shared, own = [], []
    spent: dict[str, list[float]] = {"nodes": [], "databases": []}
    with nodes.databases(bench) as databases:
        for number in range(min(ROUNDS, bench.rounds)):
            with databases.serving(f"due{number}", fleet) as serving:
                took, used = come(bench, serving, vms, databases)
                shared.append(took)
                databases_spent = sum(used[name] for name in nodes.SERVERS)
                spent["databases"].append(databases_spent)
                spent["nodes"].append(sum(used.values()) - databases_spent)
            folder = bench.scratch / f"due-sqlite-{number}"
            with product.serving(folder, fleet, *nodes.SERVICE, *bench.flags) as server:
                own.append(come(bench, [server], vms)[0])
    return measured(
        "C6",
        f"{many(vms, 'events')} due at one instant → the last visible, three nodes ÷ SQLite",
        ratios(shared, own),
        unit="×",
        goal=at_most(1.5),
        note=f"three nodes {Spread.of(shared).median:.2f} s, SQLite {Spread.of(own).median:.2f} s;"
        f" processor time of the nodes {Spread.of(spent['nodes']).median:.1f} s, of the database"
        f" servers {Spread.of(spent['databases']).median:.1f} s, on {os.cpu_count()} cores",
    )


def _with_one_paused(bench: Bench) -> Line:
    vms = bench.scaled(1_000)
    bench.say(f"C7: {vms} events due at once, and one node of three is paused in the middle")
    seen = []
    with nodes.databases(bench) as databases:
        for number in range(min(ROUNDS, bench.rounds)):
            with databases.serving(f"paused{number}", fleet_of_spots(vms)) as serving:
                # Another one each time, and another moment of its work.
                victim = serving.pop(number % len(serving))
                after = 0.02 * (number + 1)
                seen.append(come(bench, serving, vms, victim=victim, after=after)[0])
    return measured(
        "C7",
        f"{many(vms, 'events')} due, SIGSTOP to one node of three → the last visible at the others",
        Spread.of(seen),
        unit="s",
        goal=at_most(5),
        note="from the instant at which all are due",
    )


def fleet_of_spots(vms: int) -> str:
    return product.fleet_of(vms + AT_ONCE, kind="alone").replace(
        'name = "many-', 'priority = "Spot"\nname = "many-'
    )


def come(
    bench: Bench,
    serving: Sequence[Product],
    vms: int,
    databases: Databases | None = None,
    *,
    victim: Product | None = None,
    after: float = 0,
) -> tuple[float, dict[str, float]]:
    """Seconds from the instant until every VM has read that its event started.

    With the processor time that each part of nodes and databases took from then until all VMs had
    looked.
    """
    addresses = product.addresses(vms)
    visits = [
        Shot(serving[number % len(serving)].metadata, address, exchange.poll())
        for number, address in enumerate(addresses)
    ]
    # The first read of a scope's document is what gives it notice.
    shoot(visits)
    due = _schedule(serving[0], vms)
    usage.wait(max(0.0, due - LEAD - _now()))
    # A node lets a VM wait at its first poll, and the crowd's polls come one after another.
    shoot(visits)
    with contextlib.ExitStack() as stack:
        parts = []
        for number, node in enumerate(serving):
            own = addresses[number :: len(serving)]
            folder = bench.scratch / f"due-crowd-{number}"
            members = crowd.gathered(folder, node.metadata, own, prefix=())
            parts.append(Served(stack.enter_context(members), len(own)))
            # All scopes have had the same life, so all documents have the same incarnation.
            now = exchange.ask(node.metadata, exchange.poll(), source=own[0])
            parts[-1].crowd.begin_waiting(product.incarnation(now.body))
            parts[-1].crowd.hear()
        left = due - _now()
        if left < 1:
            raise BrokenExchangeError("the machine is too slow: events fell due before VMs waited")
        began = time.monotonic() + left
        usage.wait(began + after - time.monotonic())
        before = _used(serving, databases)
        with paused(*(victim.pids if victim is not None else ())):
            last = max(_started(part) for part in parts)
        used = _used(serving, databases)
    return last - began, {name: used[name] - before[name] for name in used}


def _used(serving: Sequence[Product], databases: Databases | None) -> dict[str, float]:
    of_databases = databases.processor_seconds() if databases is not None else {}
    return {**nodes.processor_seconds(serving), **of_databases}


def _started(part: Served) -> float:
    """When the last of them was told of it."""
    heard = part.crowd.hear()
    # The document may have changed otherwise than by a start: nothing but a look tells.
    started = part.crowd.look('"EventStatus":"Started"')["seen"]
    if min(heard["answered"], started) < part.vms:
        raise BrokenExchangeError(
            f"of {part.vms} VMs {started} were told of a start; long polls got {heard['kinds']}"
        )
    return float(max(heard["arrivals"]))


def _schedule(node: Product, vms: int) -> float:
    """An event for each, all at one instant, which is returned (Unix time)."""
    names = [f"many-{number}" for number in range(vms + AT_ONCE)]
    began = time.monotonic()
    # Some VMs are there only for this: how long will all the others take?
    deque(nodes.schedule(node, names[vms:], type="Preempt", notice=lambda: "5m"), maxlen=0)
    each = time.monotonic() - began
    due = math.ceil(_now() + NOTICE + 3 * each * vms / AT_ONCE)

    def notice() -> str:
        # Instants are rounded up to seconds. The request has half a second to come to a decision.
        while (left := due - _now()) % 1 < 0.5:
            usage.wait(0.01)
        return f"{math.floor(left)}s"

    events = nodes.schedule(node, names[:vms], type="Preempt", notice=notice)
    seen = {event["not_before"] for event in events}
    wrong = {datetime.fromisoformat(text).timestamp() for text in seen} - {float(due)}
    if wrong:
        raise BrokenExchangeError("the machine is too slow: events did not get the same instant")
    return due


def _now() -> float:
    # The time that nodes on this host go by.
    return time.time()  # noqa: TID251
