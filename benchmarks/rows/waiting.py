"""P3: a change, and ten thousand VMs that have been waiting for it."""

import contextlib
import time
from collections.abc import Collection, Iterator

from benchmarks import crowd, exchange, product, usage
from benchmarks.bench import Bench, NotOfferedError, many
from benchmarks.crowd import Crowd
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, percentile
from benchmarks.product import Product

VM = "many_IN_0"


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    count = bench.scaled(10_000)
    with contextlib.ExitStack() as stack:
        fleet = product.fleet_of(count, kind="together")
        server = stack.enter_context(bench.serving("waiting", fleet))
        if not product.offers_long_poll(server):
            raise NotOfferedError("the server does not offer the long poll")
        bench.say(f"P3: {count} VMs wait")
        bystander = stack.enter_context(_crowd(bench, server, [exchange.LOOPBACK], "bystander"))
        usage.wait_until_quiet(server.pids)
        before = usage.memory(server.pids)
        waiting = stack.enter_context(
            _crowd(bench, server, product.addresses(count), "waiting-crowd")
        )
        held: list[float] = []
        last: list[float] = []
        worst: list[float] = []
        for _number in range(bench.rounds + 1):
            _begin(server, waiting)
            held.append((usage.memory(server.pids) - before) / count)
            answered, slowest = _change(server, waiting, bystander)
            if len(answered) < count:
                raise BrokenExchangeError(f"{count - len(answered)} of {count} heard nothing")
            last.append(percentile(answered, 99) * 1e3)
            worst.append(slowest * 1e3)
    what = many(count, "waiting VMs")
    # The first round only warms up; but memory is what a server takes that has done so once.
    yield measured(
        "P3",
        f"change → {what} answered, p99",
        Spread.of(last[1:]),
        unit="ms",
        goal=at_most(120),
        note="from the control request's sending",
    )
    yield measured(
        "P3",
        "memory a waiting VM, its connection included",
        Spread.of([held[1]]),
        unit="B",
        goal=at_most(1536),
        note=f"{held[0]:.0f} B before the first change",
    )
    yield measured(
        "P3",
        "worst ordinary poll meanwhile",
        Spread.of(worst[1:]),
        unit="ms",
        goal=at_most(10),
    )


def _crowd(
    bench: Bench, server: Product, addresses: list[str], name: str
) -> contextlib.AbstractContextManager[Crowd]:
    folder = bench.scratch / name
    return crowd.gathered(folder, server.metadata, addresses, prefix=bench.cores.loading)


def _begin(server: Product, waiting: Crowd) -> None:
    now = exchange.ask(server.metadata, exchange.poll_as(VM))
    waiting.begin_waiting(product.incarnation(now.body))
    waiting.hear()
    usage.wait_until_quiet(server.pids)


def _change(server: Product, waiting: Crowd, bystander: Crowd) -> tuple[list[float], float]:
    """When each was answered, and how long an ordinary poll took at worst, in seconds."""
    bystander.begin_polling(1.5, every=0.001)
    # The bystander has to be at it when the change comes.
    usage.wait(0.3)
    sent_at = time.monotonic()
    events = server.schedule([VM])
    heard = waiting.hear()
    polled = bystander.hear()
    # Nobody waits now, so this change wakes nobody.
    server.call("POST", f"/v1/events/{events[0]['event_id']}/cancel")
    arrivals = sorted(heard["arrivals"])[: heard["answered"]]
    return [arrival - sent_at for arrival in arrivals], max(polled["latencies"])
