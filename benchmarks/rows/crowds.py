"""P2b: ten thousand VMs as they really poll, once a second each."""

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from benchmarks import crowd, exchange, nginx, product, usage
from benchmarks.bench import Bench, many
from benchmarks.crowd import Crowd
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured, percentile, ratios
from benchmarks.polling import Subject, alternate


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    count = bench.scaled(10_000)
    seconds = max(3.0, bench.seconds)
    with contextlib.ExitStack() as stack:
        fleet = product.fleet_of(bench.scaled(100_000), kind="grouped")
        server = stack.enter_context(bench.serving("crowds", fleet))
        answer = exchange.ask(server.metadata, exchange.poll())
        limit = stack.enter_context(
            nginx.serving(bench.scratch / "crowds-nginx", answer, prefix=bench.cores.serving)
        )
        subjects = [
            Subject("Forewarned", server.pids, server.metadata),
            Subject("nginx", limit.pids, limit.plain),
        ]
        bench.say(f"P2b: connecting {count} VMs to each")
        crowds = {
            subject.name: stack.enter_context(
                crowd.gathered(
                    bench.scratch / f"crowd-{subject.name}",
                    subject.port,
                    # From all over the fleet, not from neighbours in one scope.
                    product.addresses(count, apart=10),
                    prefix=bench.cores.loading,
                )
            )
            for subject in subjects
        }
        latencies: dict[str, list[float]] = {subject.name: [] for subject in subjects}

        def core_used(subject: Subject) -> float:
            share, seen = _core_used(subject, crowds[subject.name], seconds)
            latencies[subject.name] += seen
            return share

        used = alternate(subjects, bench.rounds, core_used)
    notes = (
        f"{name} {Spread.of(used[name]).median:.0%} of a core,"
        f" p50 {percentile(latencies[name], 50) * 1e6:.0f} µs,"
        f" p99 {percentile(latencies[name], 99) * 1e6:.0f} µs"
        for name in used
    )
    yield measured(
        "P2b",
        f"{many(count, 'VMs')} at 1/s: our core ÷ nginx's",
        ratios(used["Forewarned"], used["nginx"]),
        unit="×",
        goal=at_most(1.0),
        note="; ".join(notes),
    )


def _core_used(subject: Subject, members: Crowd, seconds: float) -> tuple[float, list[float]]:
    before = usage.processor_seconds(subject.pids)
    polled: Any = members.poll(seconds)
    spent = usage.processor_seconds(subject.pids) - before
    if polled["skipped"] > polled["answered"] // 20:
        raise BrokenExchangeError(
            f"{subject.name} answered {polled['answered']} polls and {polled['skipped']} too late"
        )
    # By polls, not by the clock: a poll that was skipped is not a poll that was cheap.
    return spent / seconds * (1 + polled["skipped"] / polled["answered"]), polled["latencies"]
