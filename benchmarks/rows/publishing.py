"""P10: what publishing adds to the processor time of an approval.

One server, whose only subscription is added and removed in turns: two servers differ by more than
what is measured here. One subscription is for none of the messages. Another is for all of them and
paused: they are written for it, and not delivered. That is what publishing adds to the transactions
of an approval, and the goals are about this alone. The last one is for all of them too, and a
receiver accepts each at once: what deliveries take of the server is included, and has no goal.

All of it is on SQLite, with one subscription, plain HTTP and the default shape.
"""

from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from benchmarks import exchange, product, usage, volley
from benchmarks.bench import Bench
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.polling import Subject
from benchmarks.product import Product
from benchmarks.rows import approvals
from tests.end_to_end.webhook_receiver import WebhookReceiver, webhook_receiver

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
_NOBODY: Final = "http://127.0.0.1:9/"
_DELIVERED: Final = 200
"""Approvals of a round whose messages are delivered: that takes much longer than the approvals."""
_LONGEST_DELIVERY: Final = 240
"""Seconds, for those of a round."""


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    each, delivered = bench.scaled(700), bench.scaled(_DELIVERED)
    kinds = list(_FILTERS)
    in_turns = each * len(kinds) * _TURNS
    names = [f"many-{number}" for number in range(in_turns + delivered)]
    costs: dict[str, list[float]] = {kind: [] for kind in (*kinds, "delivered")}
    bench.say(f"P10: {len(names)} events to approve in each round, with and without a subscription")
    fleet = product.fleet_of(len(names), kind="alone")
    with (
        bench.serving("publishing", fleet, *approvals.STOPPED) as server,
        webhook_receiver() as receiver,
    ):
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        subject = Subject("Forewarned", server.pids, server.metadata)
        for number in range(bench.rounds + 1):
            # The same VMs in each round: what an approval costs depends on how many there are.
            requests = approvals.requests_of(server, names)
            spent = dict.fromkeys(costs, 0.0)
            for turn in range(len(kinds) * _TURNS):
                # Each comes first, second and third equally often.
                kind = kinds[(turn + turn // len(kinds)) % len(kinds)]
                _subscribe_paused(server, _FILTERS[kind])
                cost, _rate = approvals.approve(subject, requests[turn * each :][:each])
                spent[kind] += cost / _TURNS
            spent["delivered"] = _deliver(server, subject, receiver, requests[in_turns:])
            if number:
                for kind, cost in spent.items():
                    costs[kind].append(cost)
            server.call("POST", "/v1/clock/step", {"by": _PAST_ANY_IMPACT})
    off, none, all_, sent = (Spread.of(each_cost).median for each_cost in costs.values())
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
        "the same with a paused subscription for all messages, against none",
        ratios(costs["for all"], costs["off"]),
        unit="×",
        goal=at_most(1.1),
        note=f"{all_:.0f} µs and {off:.0f} µs; two messages of each approval are written,"
        " and not delivered",
    )
    yield measured(
        "P10",
        "the same with all messages delivered, against no subscription",
        ratios(costs["delivered"], costs["off"]),
        unit="×",
        note=f"{sent:.0f} µs and {off:.0f} µs, for an approval and the delivery of two messages to"
        " a receiver on the same machine that accepts each at once",
    )


def _deliver(
    server: Product, subject: Subject, receiver: WebhookReceiver, requests: Sequence[bytes]
) -> float:
    """Microseconds of an approval, with the delivery of its messages."""
    _remove(server)
    _add(server, receiver.url, {})
    usage.wait_until_quiet(subject.pids)
    before = usage.processor_seconds(subject.pids)
    shot = volley.fire(subject.port, requests, connections=approvals.CONNECTIONS)
    if shot.refused:
        raise BrokenExchangeError(f"{subject.name} refused {shot.refused} approvals")
    for _ in range(_LONGEST_DELIVERY):
        health = server.call("GET", f"/v1/subscriptions/{_NAME}")["health"]
        if not health["pending"]:
            break
        usage.wait(1)
    usage.wait_until_quiet(subject.pids)
    spent = usage.processor_seconds(subject.pids) - before
    _remove(server)
    expected = 2 * len(requests)
    if health["delivered"] != expected or health["failed"]:
        raise BrokenExchangeError(f"{health['delivered']} of {expected} messages were delivered")
    return spent / len(requests) * 1e6


def _subscribe_paused(server: Product, filter_: dict[str, Any] | None) -> None:
    _remove(server)
    if filter_ is not None:
        _add(server, _NOBODY, filter_)
        server.call("POST", f"/v1/subscriptions/{_NAME}/pause")


def _add(server: Product, url: str, filter_: dict[str, Any]) -> None:
    target = {
        "kind": "webhook",
        "url": url,
        "secrets": [f"whsec_{b64encode(bytes(32)).decode()}"],
    }
    server.call("POST", "/v1/subscriptions", {"name": _NAME, "target": target, "filter": filter_})


def _remove(server: Product) -> None:
    if server.call("GET", "/v1/subscriptions")["subscriptions"]:
        server.call("DELETE", f"/v1/subscriptions/{_NAME}")
