"""P10: what publishing adds to the processor time of an approval.

One server, whose only subscription is added and removed in turns: two servers differ by more than
what is measured here. One subscription is for none of the messages. Another is for all of them and
paused, so that they are kept for it, and not delivered.
"""

from base64 import b64encode
from collections.abc import Collection, Iterator
from typing import Any, Final

from benchmarks import exchange, product, volley
from benchmarks.bench import Bench
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.polling import Subject
from benchmarks.product import Product
from benchmarks.rows import approvals

_NAME: Final = "measured"
# Any: what JSON is made of.
_FILTERS: Final[dict[str, dict[str, Any] | None]] = {
    "off": None,
    "for none": {"vms": ["none"]},
    "for all": {},
}
_TURNS: Final = 6
"""Of each in a round: the machine is slower in one minute than in the next."""
_PAST_ANY_IMPACT: Final = "1h"


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    each = bench.scaled(700)
    kinds = list(_FILTERS)
    names = [f"many-{number}" for number in range(each * len(kinds) * _TURNS)]
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    bench.say(f"P10: {len(names)} events to approve in each round, with and without a subscription")
    fleet = product.fleet_of(len(names), kind="alone")
    with bench.serving("publishing", fleet, *approvals.STOPPED) as server:
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        subject = Subject("Forewarned", server.pids, server.metadata)
        for number in range(bench.rounds + 1):
            # The same VMs in each round: what an approval costs depends on how many there are.
            requests = approvals.requests_of(server, names)
            spent = dict.fromkeys(kinds, 0.0)
            for turn in range(len(kinds) * _TURNS):
                # Each comes first, second and third equally often.
                kind = kinds[(turn + turn // len(kinds)) % len(kinds)]
                _subscribe(server, _FILTERS[kind])
                cost, _rate = approvals.approve(subject, requests[turn * each :][:each])
                spent[kind] += cost / _TURNS
            if number:
                for kind, cost in spent.items():
                    costs[kind].append(cost)
            _subscribe(server, None)
            server.call("POST", "/v1/clock/step", {"by": _PAST_ANY_IMPACT})
    off, none, all_ = (Spread.of(costs[kind]).median for kind in _FILTERS)
    yield measured(
        "P10",
        "processor time of an approval with a subscription for other messages, against none",
        ratios(costs["for none"], costs["off"]),
        unit="×",
        goal=at_most(1.1),
        note=f"{none:.0f} µs and {off:.0f} µs",
    )
    yield measured(
        "P10",
        "the same with a subscription for all messages, against none",
        ratios(costs["for all"], costs["off"]),
        unit="×",
        goal=at_most(1.1),
        note=f"{all_:.0f} µs and {off:.0f} µs; two messages of each approval are kept for delivery,"
        " and the delivery itself is not part of it",
    )


def _subscribe(server: Product, filter_: dict[str, Any] | None) -> None:
    if server.call("GET", "/v1/subscriptions")["subscriptions"]:
        server.call("DELETE", f"/v1/subscriptions/{_NAME}")
    if filter_ is None:
        return
    target = {
        "kind": "webhook",
        "url": "http://127.0.0.1:9/",
        "secrets": [f"whsec_{b64encode(bytes(32)).decode()}"],
    }
    server.call("POST", "/v1/subscriptions", {"name": _NAME, "target": target, "filter": filter_})
    server.call("POST", f"/v1/subscriptions/{_NAME}/pause")
