"""C10: how long after a change at one node a person sees it at another, in a real browser."""

import time
from collections.abc import Collection, Iterator
from typing import Final

from benchmarks import nodes, product, usage
from benchmarks.bench import Bench
from benchmarks.console.windows import Window, chromium
from benchmarks.figures import Line, Spread, at_most, measured, percentile
from benchmarks.product import PROBE, Product

A_ROUND: Final = 10
CALM: Final = 1.0
"""Seconds between changes: a window rests between two fetches."""
SEEN: Final = at_most(100)


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    times = bench.scaled(A_ROUND)
    bench.say(f"C10: {times} changes a round at one node, seen in a window of another")
    fleet = product.fleet_of(0, kind="alone")
    rounds: list[list[float]] = []
    with (
        nodes.databases(bench) as databases,
        databases.serving("console", fleet) as serving,
        chromium() as browser,
    ):
        window = Window(browser, f"http://127.0.0.1:{serving[-1].control}")
        window.load("/")
        window.go_live()
        for number in range(bench.rounds + 1):
            seen = [_seen(serving[0], window) for _ in range(times)]
            if number:
                rounds.append(seen)
    every = [each for seen in rounds for each in seen]
    most = f"of all p90 {percentile(every, 90):.0f} ms, longest {max(every):.0f} ms"
    yield measured(
        "C10",
        "schedule at one node → shown in a window of another, after the answer",
        Spread.of(percentile(seen, 50) for seen in rounds),
        unit="ms",
        goal=SEEN,
        note=f"medians of {times} changes; {most}",
    )


def _seen(node: Product, window: Window) -> float:
    """Milliseconds from the answer until the window shows the event, by the system's clock."""
    window.watch_for("#timeline .bar.status-Scheduled")
    [event] = node.schedule([PROBE], type="Freeze", notice="50m")
    answered_at = time.time()  # noqa: TID251  # the clock that the window tells by
    seen_at = window.seen_at()
    usage.wait(CALM)
    node.call("POST", f"/v1/events/{event['event_id']}/cancel")
    usage.wait(CALM)
    # A person may see it before the operator is answered.
    return max(0.0, (seen_at - answered_at) * 1e3)
