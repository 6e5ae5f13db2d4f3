"""P4, P6: a million VMs: what a poll costs then, what each VM takes, how long a start is."""

import contextlib
import time
from collections.abc import Collection, Iterator
from functools import partial

from benchmarks import exchange, product, usage, volley
from benchmarks.bench import Bench, many
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.polling import Subject, alternate, cost
from benchmarks.product import Product
from benchmarks.programs import MissingProgramError, find
from benchmarks.rows.polls import ANEW, KEPT, burst

IN_A_SCOPE = 100


def measure(bench: Bench, wanted: Collection[str]) -> Iterator[Line]:
    vms = bench.scaled(1_000_000)
    # One instance fewer: the probe is a VM too.
    fleet = product.fleet_of(vms - 1, kind="grouped")
    bench.say(f"P4, P6: importing {vms} VMs")
    began = time.monotonic()
    with bench.serving("million", fleet, "--clock", "paused") as server:
        imported = time.monotonic() - began
        scopes = _open_an_event_in_each_scope(server, vms)
    if "P6" in wanted:
        yield from _size(bench, fleet, vms, note=f"{many(scopes, 'open events')}", took=imported)
    if "P4" in wanted:
        if find("wrk") is None:
            raise MissingProgramError("needs wrk, which is not installed")
        yield from _cost(bench, fleet, vms)


def _open_an_event_in_each_scope(server: Product, vms: int) -> int:
    names = [f"many_{number}" for number in range(0, vms - 1, IN_A_SCOPE)]
    volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
    events = server.schedule(names)
    assert all(event["announced"] for event in events)
    return len(events)


def _size(bench: Bench, fleet: str, vms: int, *, note: str, took: float) -> Iterator[Line]:
    starts, sizes = [], []
    for _ in range(min(3, bench.rounds)):
        with _empty(bench) as small:
            floor = usage.memory(small.pids)
        with bench.serving("million", fleet, "--clock", "paused") as server:
            starts.append(server.ready_after)
            usage.wait_until_quiet(server.pids)
            sizes.append((usage.memory(server.pids) - floor) / vms)
    what = many(vms, "VMs")
    yield measured(
        "P6", f"memory per VM, {what}", Spread.of(sizes), unit="B", goal=at_most(400), note=note
    )
    yield measured(
        "P6",
        f"start with {what}",
        Spread.of(starts),
        unit="s",
        goal=at_most(10),
    )
    yield measured(
        "P6",
        f"first start, which imports {what}",
        Spread.of([took]),
        unit="s",
        goal=at_most(40),
        note="measured once",
    )


def _cost(bench: Bench, fleet: str, vms: int) -> Iterator[Line]:
    with _empty(bench) as small, bench.serving("million", fleet, "--clock", "paused") as large:
        few = Subject("one", small.pids, small.metadata)
        full = Subject("all", large.pids, large.metadata)
        bench.say("P4: a poll with all of them, and with one")
        for headers, where in ((KEPT, "keep-alive poll"), (ANEW, "poll on a new connection")):
            spent = partial(cost, load=partial(burst, bench, headers))
            costs = alternate([full, few], bench.rounds, spent)
            yield measured(
                "P4",
                f"{where} with {many(vms, 'VMs')} ÷ with one",
                ratios(costs["all"], costs["one"]),
                unit="×",
                goal=at_most(1.1),
            )


def _empty(bench: Bench) -> contextlib.AbstractContextManager[Product]:
    return bench.serving("single", product.fleet_of(0, kind="grouped"), "--clock", "paused")
