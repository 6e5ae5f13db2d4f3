"""P3: a change, and ten thousand VMs that have been waiting for it."""

import contextlib
import time
from collections.abc import Collection, Iterator, Sequence

from benchmarks import crowd, exchange, product, usage
from benchmarks.bench import Bench, NotOfferedError, many
from benchmarks.crowd import Crowd
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, percentile
from benchmarks.product import Product

VM = "many_IN_0"


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    count = bench.scaled(10_000)
    addresses = product.addresses(count)
    with contextlib.ExitStack() as stack:
        fleet = product.fleet_of(count, kind="together")
        server = stack.enter_context(bench.serving("waiting", fleet))
        if not product.offers_long_poll(server):
            raise NotOfferedError("the server does not offer the long poll")
        bench.say(f"P3: {count} VMs wait")
        # It must not queue behind the crowd that reads its answers on the same core.
        first = ["nice", "-n", "-15"]
        bystander = stack.enter_context(
            _crowd(bench, server, [exchange.LOOPBACK], "bystander", prefix=first)
        )
        half = count // 2
        crowds = [stack.enter_context(_crowd(bench, server, addresses[:half], "first-half"))]
        _begin(server, crowds)
        # A server that has just read a fleet has memory to spare, which the first half uses up.
        before = usage.memory(server.pids)
        late = stack.enter_context(_crowd(bench, server, addresses[half:], "second-half"))
        _begin(server, [late])
        crowds.append(late)
        held = (usage.memory(server.pids) - before) / (count - half)
        last: list[float] = []
        worst: list[float] = []
        for number in range(bench.rounds + 1):
            if number:
                _begin(server, crowds)
            answered, slowest = _change(server, crowds, bystander)
            if len(answered) < count:
                raise BrokenExchangeError(f"{count - len(answered)} of {count} heard nothing")
            last.append(percentile(answered, 99) * 1e3)
            worst.append(slowest * 1e3)
    what = many(count, "waiting VMs")
    yield measured(
        "P3",
        f"change → {what} answered, p99",
        Spread.of(last[1:]),
        unit="ms",
        goal=at_most(120),
        note="from when the control request was sent",
    )
    yield measured(
        "P3",
        "memory per waiting VM, its connection included",
        Spread.of([held]),
        unit="B",
        goal=at_most(1536),
    )
    yield measured(
        "P3",
        "worst ordinary poll meanwhile",
        Spread.of(worst[1:]),
        unit="ms",
        goal=at_most(10),
    )


def _crowd(
    bench: Bench, server: Product, addresses: list[str], name: str, prefix: Sequence[str] = ()
) -> contextlib.AbstractContextManager[Crowd]:
    return crowd.gathered(
        bench.scratch / name,
        server.metadata,
        addresses,
        prefix=[*bench.cores.loading, *prefix],
    )


def _begin(server: Product, crowds: list[Crowd]) -> None:
    now = exchange.ask(server.metadata, exchange.poll_as(VM))
    for waiting in crowds:
        waiting.begin_waiting(product.incarnation(now.body))
        waiting.hear()
    usage.wait_until_quiet(server.pids)


def _change(server: Product, crowds: list[Crowd], bystander: Crowd) -> tuple[list[float], float]:
    """When each was answered, and how long an ordinary poll took at worst, in seconds."""
    bystander.begin_polling(1.5, every=0.001)
    # The bystander has to be at it when the change comes.
    usage.wait(0.3)
    sent_at = time.monotonic()
    events = server.schedule([VM])
    arrivals: list[float] = []
    for waiting in crowds:
        heard = waiting.hear()
        arrivals += heard["arrivals"][: heard["answered"]]
    polled = bystander.hear()
    # No VM waits now, so this change wakes none.
    server.call("POST", f"/v1/events/{events[0]['event_id']}/cancel")
    return [arrival - sent_at for arrival in arrivals], max(polled["latencies"])
