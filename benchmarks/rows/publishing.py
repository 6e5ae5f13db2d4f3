"""P10: what publishing adds to the processor time of an approval.

One server, whose only subscription is added and removed in turns: two servers differ by more than
what is measured here. The subscription takes none of the messages: they are written, and looked at,
but not delivered.
"""

from base64 import b64encode
from collections.abc import Collection, Iterator

from benchmarks import exchange, product, volley
from benchmarks.bench import Bench
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.polling import Subject
from benchmarks.product import Product
from benchmarks.rows import approvals

_SUBSCRIPTION = {
    "name": "nobody",
    "target": {
        "kind": "webhook",
        "url": "http://127.0.0.1:9/",
        "secrets": [f"whsec_{b64encode(bytes(32)).decode()}"],
    },
    "filter": {"vms": ["none"]},
}


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    each = bench.scaled(5_000)
    pairs = bench.rounds + 1
    names = [f"many-{number}" for number in range(each * 2 * pairs)]
    costs: dict[bool, list[float]] = {False: [], True: []}
    bench.say(f"P10: {len(names)} events to approve, with and without a subscription")
    fleet = product.fleet_of(len(names), kind="alone")
    with bench.serving("publishing", fleet, *approvals.STOPPED) as server:
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        requests = approvals.requests_of(server, names)
        subject = Subject("Forewarned", server.pids, server.metadata)
        for number in range(pairs):
            at = number * 2 * each
            halves = requests[at : at + each], requests[at + each : at + 2 * each]
            # The order changes from turn to turn, so that neither has the quiet moments.
            for is_on, half in zip((number % 2 == 0, number % 2 == 1), halves, strict=True):
                _publish(server, is_on=is_on)
                cost, _rate = approvals.approve(subject, half)
                if number:
                    costs[is_on].append(cost)
    yield measured(
        "P10",
        "processor time of an approval with publishing on, against the same without",
        ratios(costs[True], costs[False]),
        unit="×",
        goal=at_most(1.1),
        note=f"{Spread.of(costs[True]).median:.0f} µs and {Spread.of(costs[False]).median:.0f} µs;"
        " the delivery itself is not part of it",
    )


def _publish(server: Product, *, is_on: bool) -> None:
    known = server.call("GET", "/v1/subscriptions")["subscriptions"]
    if is_on and not known:
        server.call("POST", "/v1/subscriptions", _SUBSCRIPTION)
    elif known and not is_on:
        server.call("DELETE", "/v1/subscriptions/nobody")
