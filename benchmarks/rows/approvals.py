"""P5: the processor time of a durable approval, with everything that follows from it."""

from collections.abc import Collection, Iterator, Sequence

from benchmarks import exchange, product, rivals, usage, volley
from benchmarks.bench import Bench
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.polling import Subject
from benchmarks.product import Product

CONNECTIONS = 64
STOPPED = ("--clock", "paused")
"""So that no event is over while others are approved: its end is no part of an approval."""


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    each = bench.scaled(2_500)
    names = [f"many-{number}" for number in range(each * (bench.rounds + 1))]
    costs: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    bench.say(f"P5: {len(names)} events to approve")
    with (
        bench.serving("approvals", product.fleet_of(len(names), kind="alone"), *STOPPED) as server,
        rivals.starlette(bench.scratch / "starlette", prefix=bench.cores.serving) as peer,
    ):
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        requests = requests_of(server, names)
        ours = Subject("Forewarned", server.pids, server.metadata)
        for number, at in enumerate(range(0, len(requests), each)):
            # The order changes from round to round, so that neither has the quiet moments.
            for subject in (ours, peer) if number % 2 else (peer, ours):
                cost, rate = approve(subject, requests[at : at + each])
                if number:
                    costs.setdefault(subject.name, []).append(cost)
                    rates.setdefault(subject.name, []).append(rate)
    yield measured(
        "P5",
        "processor time of a durable approval, with what follows from it",
        Spread.of(costs[ours.name]),
        unit="µs",
        goal=at_most(250),
        note=f"over {CONNECTIONS} connections; {Spread.of(rates[ours.name]).median:,.0f}/s",
    )
    yield measured(
        "P5",
        f"approval, against {peer.name} with one commit per request",
        ratios(costs[peer.name], costs[ours.name]),
        unit="×",
        note=f"{peer.name} {Spread.of(costs[peer.name]).median:.0f} µs,"
        f" {Spread.of(rates[peer.name]).median:,.0f}/s, and nothing follows there",
    )


def approve(subject: Subject, requests: Sequence[bytes]) -> tuple[float, float]:
    """Microseconds of an approval, and approvals a second."""
    usage.wait_until_quiet(subject.pids)
    before = usage.processor_seconds(subject.pids)
    shot = volley.fire(subject.port, requests, connections=CONNECTIONS)
    if shot.refused:
        raise BrokenExchangeError(f"{subject.name} refused {shot.refused} approvals")
    usage.wait_until_quiet(subject.pids)
    spent = usage.processor_seconds(subject.pids) - before
    return spent / len(requests) * 1e6, len(requests) / shot.seconds


def requests_of(server: Product, names: list[str]) -> list[bytes]:
    """An approval for an event of each, in the order of the names."""
    events: dict[str, str] = {}
    for at in range(0, len(names), 10_000):
        for event in server.schedule(names[at : at + 10_000]):
            events[event["resources"][0]] = event["event_id"]
    return [exchange.approval(name, events[name]) for name in names]
