"""P5: approvals that many VMs send together, each answered when it is durable."""

from collections.abc import Collection, Iterator

from benchmarks import exchange, product, volley
from benchmarks.bench import Bench
from benchmarks.commits import Ledger
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_least, measured, ratios
from benchmarks.product import Product

CONNECTIONS = 64


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    each = bench.scaled(2_500)
    names = [f"many-{number}" for number in range(each * (bench.rounds + 1))]
    ledger = Ledger(bench.scratch / "approvals")
    approved: list[float] = []
    committed: list[float] = []
    bench.say(f"P5: {len(names)} events to approve")
    with bench.serving("approvals", product.fleet_of(len(names), kind="alone")) as server:
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        requests = _requests(server, names)
        for at in range(0, len(requests), each):
            committed.append(ledger.rate(min(1.0, bench.seconds)))
            shot = volley.fire(server.metadata, requests[at : at + each], connections=CONNECTIONS)
            if shot.refused:
                raise BrokenExchangeError(f"{shot.refused} approvals were refused")
            approved.append(each / shot.seconds)
    ledger.close()
    yield measured(
        "P5",
        f"durable approvals over {CONNECTIONS} connections ÷ single SQLite commits",
        ratios(approved[1:], committed[1:]),
        unit="×",
        goal=at_least(2),
        note=f"{Spread.of(approved[1:]).median:,.0f}/s against"
        f" {Spread.of(committed[1:]).median:,.0f}/s",
    )


def _requests(server: Product, names: list[str]) -> list[bytes]:
    """An approval for an event of each, in the order of the names."""
    events: dict[str, str] = {}
    for at in range(0, len(names), 10_000):
        for event in server.schedule(names[at : at + 10_000]):
            events[event["resources"][0]] = event["event_id"]
    return [exchange.approval(name, events[name]) for name in names]
