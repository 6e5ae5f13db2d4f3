"""C3: how long after a commit at one node its change is visible at all of them."""

import contextlib
import socket
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from typing_extensions import override

from benchmarks import exchange, nodes, product, usage
from benchmarks.bench import Bench
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, percentile
from benchmarks.nodes import Databases
from benchmarks.product import PROBE, Product
from benchmarks.rows.visible import settle

A_ROUND: Final = 200
REST: Final = 0.06
"""Seconds between changes: a node sends a hint every 50 ms at most."""
TICK: Final = 0.05
"""Seconds between two looks of a node that gets no hints."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How long changes took, in seconds."""

    requests: list[list[float]]
    """Until the node where they were made had answered, by round."""
    late: list[list[float]]
    """From there until they were visible at all nodes."""

    @override
    def __str__(self) -> str:
        late, requests = list(chain(*self.late)), list(chain(*self.requests))
        return (
            f"visible p50 {percentile(late, 50) * 1e3:.1f} ms, p99"
            f" {percentile(late, 99) * 1e3:.1f} ms after the answer; request p50"
            f" {percentile(requests, 50) * 1e3:.1f} ms,"
            f" p99 {percentile(requests, 99) * 1e3:.1f} ms"
        )

    def p99s(self) -> Iterator[tuple[float, float]]:
        """Of each round, the lateness and the request."""
        for late, requests in zip(self.late, self.requests, strict=True):
            yield percentile(late, 99), percentile(requests, 99)


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    with nodes.databases(bench) as databases:
        seen = _seen(bench, databases, is_pooled=False)
        yield measured(
            "C3",
            "commit at one node → visible at all three, p99 ÷ the p99 of the request that commits",
            Spread.of([late / request for late, request in seen.p99s()]),
            unit="×",
            goal=at_most(2),
            note=str(seen),
        )
        seen = _seen(bench, databases, is_pooled=True)
        yield measured(
            "C3",
            "the same without hints, through PgBouncer, p99 ÷ (50 ms + 2 × the request's p99)",
            Spread.of([late / (TICK + 2 * request) for late, request in seen.p99s()]),
            unit="×",
            goal=at_most(1),
            note=str(seen),
        )


def _seen(bench: Bench, databases: Databases, *, is_pooled: bool) -> Seen:
    times = bench.scaled(A_ROUND)
    way = "through PgBouncer" if is_pooled else "with hints"
    bench.say(f"C3: {times} changes a round, seen at three nodes, {way}")
    seen = Seen([], [])
    fleet = product.fleet_of(0, kind="grouped")
    database = "visible_pooled" if is_pooled else "visible"
    with databases.serving(database, fleet, is_pooled=is_pooled) as serving:
        for number in range(bench.rounds + 1):
            pairs = [_change(serving, at % len(serving)) for at in range(times)]
            if number:
                seen.requests.append([request for request, _ in pairs])
                seen.late.append([late for _, late in pairs])
    return seen


def _change(serving: Sequence[Product], at: int) -> tuple[float, float]:
    """Schedule at one of the nodes.

    Returns the seconds until it answered, and from there until a VM has heard of it at each node.
    """
    body = f'{{"type":"Reboot","resources":["{PROBE}"],"notice":"7d"}}'
    request = (
        f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(exchange.connect(node.metadata)) for node in serving]
        control = stack.enter_context(exchange.connect(serving[at].control))
        now = _agreed(lines)
        for line in lines:
            line.sendall(exchange.long_poll(now))
        for line in lines:
            settle(line)
        sent_at = time.perf_counter()
        control.sendall(request)
        answer = exchange.read(control)
        answered_at = time.perf_counter()
        # A VM may have heard of it before the operator: then its answer is here already.
        for line in lines:
            heard = exchange.read(line)
            assert product.incarnation(heard.body) > now
        heard_at = time.perf_counter()
    event_id = answer.body.split(b'"event_id":"')[1][:36].decode()
    serving[at].call("POST", f"/v1/events/{event_id}/cancel")
    usage.wait(REST)
    return answered_at - sent_at, heard_at - answered_at


def _agreed(lines: Sequence[socket.socket]) -> int:
    """The incarnation that all nodes show, once the change before this one is visible at each."""
    for _ in range(1_000):
        for line in lines:
            line.sendall(exchange.poll())
        [now, *others] = {product.incarnation(exchange.read(line).body) for line in lines}
        if not others:
            return now
        usage.wait(0.01)
    raise BrokenExchangeError("nodes did not come to show the same document within 10 s")
