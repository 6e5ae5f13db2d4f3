"""P7: from a scheduling request to the VM that waits for it, beside a durable commit."""

import socket
import time
from collections.abc import Collection, Iterator

from benchmarks import exchange, product
from benchmarks.bench import Bench, NotOfferedError
from benchmarks.commits import Ledger
from benchmarks.figures import Line, Spread, at_most, measured, percentile
from benchmarks.product import PROBE, Product

A_ROUND = 200


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    ledger = Ledger(bench.scratch / "visible")
    times = bench.scaled(A_ROUND)
    quotients, seen, commits = [], [], []
    with bench.serving("visible", product.fleet_of(0, kind="grouped")) as server:
        if not product.offers_long_poll(server):
            raise NotOfferedError("the server does not offer the long poll")
        bench.say(f"P7: {times} changes a round")
        for number in range(bench.rounds + 1):
            # A commit before each change: both see the same disk at the same time.
            pairs = [(ledger.commit(), _took(server)) for _ in range(times)]
            commit, visible = (percentile(side, 50) for side in zip(*pairs, strict=True))
            if number:
                quotients.append(visible / commit)
                seen += [pair[1] for pair in pairs]
                commits += [pair[0] for pair in pairs]
    ledger.close()
    yield measured(
        "P7",
        "schedule → visible to a long-polling VM, median ÷ a commit's median",
        Spread.of(quotients),
        unit="×",
        goal=at_most(3),
        note=f"p50 {percentile(seen, 50) * 1e3:.2f} ms, p99 {percentile(seen, 99) * 1e3:.2f} ms;"
        f" commit p50 {percentile(commits, 50) * 1e3:.2f} ms,"
        f" p99 {percentile(commits, 99) * 1e3:.2f} ms",
    )


def _took(server: Product) -> float:
    sent, heard = until_visible(server)
    return heard - sent


def until_visible(server: Product) -> tuple[float, float]:
    """When an event was asked for, and when the VM had heard of it."""
    body = f'{{"type":"Reboot","resources":["{PROBE}"],"notice":"7d"}}'
    scheduler = (
        f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
    with (
        exchange.connect(server.metadata) as vm,
        exchange.connect(server.control) as control,
    ):
        vm.sendall(exchange.poll())
        now = product.incarnation(exchange.read(vm).body)
        vm.sendall(exchange.long_poll(now))
        settle(vm)
        sent_at = time.perf_counter()
        control.sendall(scheduler)
        heard = exchange.read(vm)
        heard_at = time.perf_counter()
        answer = exchange.read(control)
    assert product.incarnation(heard.body) > now
    event_id = answer.body.split(b'"event_id":"')[1][:36].decode()
    server.call("POST", f"/v1/events/{event_id}/cancel")
    return sent_at, heard_at


def settle(vm: socket.socket) -> None:
    """Give the long poll the time to begin: an answer now would be a wrong one."""
    vm.settimeout(0.01)
    try:
        early = vm.recv(1)
    except TimeoutError:
        vm.settimeout(30)
        return
    raise AssertionError(f"a long poll was answered at once: {early!r}")
