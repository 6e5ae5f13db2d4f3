"""`make bench-smoke`: has anything collapsed? Seconds, no program that is not the project's own.

Timings on a shared machine are noisy, so a figure fails only at a tenth of its goal, and only if
further looks find the same. nginx's place is taken by a server of ours that does nothing.
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import click

from benchmarks import exchange, machine, page, product, usage, volley
from benchmarks.bench import Bench, NotOfferedError
from benchmarks.console import rendering
from benchmarks.figures import Line, Spread, at_least, measured, ratios
from benchmarks.machine import Cores
from benchmarks.polling import Subject, alternate, cost
from benchmarks.rows import due, waiting
from benchmarks.started import started, stdout_of

COLLAPSE: Final = 0.1
LOOKS: Final = 4

_KEPT: Final = 10_000
_ANEW: Final = 1_500


def main() -> None:
    if not usage.is_readable():
        click.echo("bench-smoke: processor time is read from /proc, which is Linux's: skipped")
        return
    machine.allow_connections(4_000)
    cores = Cores.of_this_machine()
    cores.load_from_here()
    collapsed = [
        name for name, row in _ROWS.items() if all(_collapses(row, cores) for _ in range(LOOKS))
    ]
    if collapsed:
        names = ", ".join(collapsed)
        raise SystemExit(f"bench-smoke: below a tenth of the goal, {LOOKS} times: {names}")


def has_collapsed(line: Line) -> bool:
    if line.spread is None or line.goal is None:
        return False
    return line.goal.margin(line.spread.median) < COLLAPSE


def _collapses(row: Callable[[Bench], Iterator[Line]], cores: Cores) -> bool:
    # Its own folder for each look: a server's store must not remember the look before.
    with tempfile.TemporaryDirectory(prefix="forewarned-smoke-") as folder:
        bench = Bench(
            cores=cores,
            rounds=1,
            seconds=0.5,
            shrink=50,
            scratch=Path(folder),
            flags=(),
            say=lambda _: None,
        )
        try:
            lines = list(row(bench))
        except NotOfferedError as error:
            click.echo(f"bench-smoke: {error}: skipped")
            return False
    for line in lines:
        wanted = page.goal(line.goal, line.unit)
        click.echo(f"bench-smoke: {line.row} {line.what}: {page.result(line)} (goal {wanted})")
    return any(map(has_collapsed, lines))


def _polls(bench: Bench) -> Iterator[Line]:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(bench.serving("polls", product.fleet_of(0, kind="grouped")))
        server.schedule([product.PROBE])
        answer = exchange.ask(server.metadata, exchange.poll())
        subjects = [
            Subject("Forewarned", server.pids, server.metadata),
            stack.enter_context(_stand_in(bench, answer)),
        ]
        loads = {"keep-alive poll": _on_kept_connections, "poll on a new connection": _anew}
        for row, (what, load) in zip(("P1", "P2"), loads.items(), strict=True):
            costs = alternate(subjects, bench.rounds, partial(cost, load=load))
            yield measured(
                row,
                f"{what}, against a server that does nothing",
                ratios(costs["limit"], costs["Forewarned"]),
                unit="×",
                goal=at_least(1.0),
                note=f"{Spread.of(costs['Forewarned']).median:.1f} µs",
            )


def _on_kept_connections(port: int) -> tuple[int, int]:
    shot = volley.fire(port, [exchange.poll()] * _KEPT, connections=32)
    return _KEPT, shot.refused


def _anew(port: int) -> tuple[int, int]:
    return _ANEW, volley.fire_anew(port, exchange.poll(), _ANEW).refused


@contextlib.contextmanager
def _stand_in(bench: Bench, answer: exchange.Answer) -> Iterator[Subject]:
    folder = bench.scratch / "limit"
    folder.mkdir()
    command = [*bench.cores.serving, sys.executable, "-m", "benchmarks.limit"]
    given = answer.head + b"\r\n\r\n" + answer.body
    here = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    with started(command, folder, given=given, environment=here) as running:
        yield Subject("limit", [running.pid], int(stdout_of(running).readline()))


def _first(
    measure: Callable[[Bench, tuple[str, ...]], Iterator[Line]], bench: Bench
) -> Iterator[Line]:
    """The row's own figure, not those beside it, such as a worst case that any noise moves."""
    first, *_ = measure(bench, ())
    yield first


# Not P5: it is bounded by the writer's processor and measured against the disk, so that on a quick
# disk, and in a moment, it is nearer to a tenth of its goal than noise would allow for.
_ROWS: Final[dict[str, Callable[[Bench], Iterator[Line]]]] = {
    "P1, P2": _polls,
    "P3": partial(_first, waiting.measure),
    "P8": partial(_first, due.measure),
    "console": rendering.measure,
}


if __name__ == "__main__":
    main()
