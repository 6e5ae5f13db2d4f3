"""P1, P2: what a poll costs, on a kept connection and on a new one."""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from benchmarks import exchange, nginx, product, rivals, wrk
from benchmarks.bench import Bench, many
from benchmarks.figures import Goal, Line, Spread, Verdict, at_least, measured, ratios
from benchmarks.polling import Subject, alternate, cost
from benchmarks.programs import MissingProgramError

KEPT = ("Metadata: true",)
ANEW = ("Metadata: true", "Connection: close")
FLEET = 100_000


def measure(bench: Bench, wanted: Collection[str]) -> Iterator[Line]:
    vms = bench.scaled(FLEET)
    with contextlib.ExitStack() as stack:
        fleet = product.fleet_of(vms - 1, kind="grouped")
        server = stack.enter_context(bench.serving("polls", fleet))
        for type_ in ("Reboot", "Freeze"):
            server.schedule([product.PROBE], type=type_)
        answer = exchange.ask(server.metadata, exchange.poll())
        ours = Subject("Forewarned", server.pids, server.metadata)
        limit = stack.enter_context(
            nginx.serving(bench.scratch / "nginx", answer, prefix=bench.cores.serving)
        )
        plain = Subject("nginx", limit.pids, limit.plain)
        deferred = Subject("nginx with deferred accept", limit.pids, limit.deferred)
        peers: list[Subject] = []
        absent: dict[str, str] = {}
        for name, peer in (("Go net/http", rivals.go), ("Flask", rivals.flask)):
            place = bench.scratch / name.split()[0]
            try:
                with_peer = peer(place, answer, prefix=bench.cores.serving)
                peers.append(stack.enter_context(with_peer))
            except MissingProgramError as error:
                absent[name] = str(error)
        note = f"{many(vms, 'VMs')}, {len(answer.body)}-byte document"
        if "P1" in wanted:
            costs = _costs(bench, "P1", [ours, plain, *peers], KEPT)
            yield from _lines("P1", "keep-alive poll", costs, note, at_least(0.9))
            goals = {"Go net/http": at_least(2.5), "Flask": at_least(65)}
            yield from _peer_lines("P1", "keep-alive poll", costs, absent, goals)
        if "P2" in wanted:
            costs = _costs(bench, "P2", [ours, plain, deferred, *peers], ANEW)
            yield from _lines("P2", "poll on a new connection", costs, note, at_least(1.0))
            shown = dict.fromkeys((deferred.name, "Go net/http", "Flask"))
            yield from _peer_lines("P2", "poll on a new connection", costs, absent, shown)


def burst(bench: Bench, headers: tuple[str, ...], port: int) -> tuple[int, int]:
    polled = wrk.run(port, bench.seconds, headers=headers, prefix=bench.cores.loading)
    return polled.requests, polled.failed


def _costs(
    bench: Bench, row: str, subjects: list[Subject], headers: tuple[str, ...]
) -> dict[str, list[float]]:
    bench.say(f"{row}: {', '.join(subject.name for subject in subjects)}")
    load = partial(burst, bench, headers)
    return alternate(subjects, bench.rounds, lambda subject: cost(subject, load))


def _lines(
    row: str, what: str, costs: dict[str, list[float]], note: str, goal: Goal
) -> Iterator[Line]:
    spent = ", ".join(f"{name} {Spread.of(us).median:.1f} µs" for name, us in costs.items())
    yield measured(
        row,
        f"{what}, against nginx",
        ratios(costs["nginx"], costs["Forewarned"]),
        unit="×",
        goal=goal,
        note=f"{spent}; {note}",
    )


def _peer_lines(
    row: str,
    what: str,
    costs: dict[str, list[float]],
    absent: dict[str, str],
    goals: Mapping[str, Goal | None],
) -> Iterator[Line]:
    for name, goal in goals.items():
        title = f"{what}, against {name}"
        if name in costs:
            spread = ratios(costs[name], costs["Forewarned"])
            yield measured(row, title, spread, unit="×", goal=goal)
        else:
            verdict = Verdict.NOT_MEASURED
            yield Line(row=row, what=title, verdict=verdict, goal=goal, note=absent[name])
