"""`make bench`: every row, beside its limit, its peers and its goal."""

import contextlib
import shlex
import tempfile
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from benchmarks import groups, machine, page, programs, records, usage
from benchmarks.bench import Bench
from benchmarks.figures import Line, Verdict
from benchmarks.machine import Cores

PACKAGES: Final = {"wrk": "wrk", "nginx": "nginx", "valgrind": "valgrind", "taskset": "util-linux"}
LEAST_ROUNDS: Final = 5


def _rows(_context: click.Context, _option: click.Parameter, given: str | None) -> set[str]:
    if given is None:
        return set(groups.ROWS)
    known = {row.lower(): (row,) for row in groups.ROWS} | groups.FAMILIES
    names = [name.strip().lower() for name in given.split(",")]
    if unknown := [name for name in names if name not in known]:
        there_are = ", ".join((*groups.ROWS, *groups.FAMILIES))
        raise click.BadParameter(f"no row {', '.join(unknown)}: there are {there_are}")
    return {row for name in names for row in known[name]}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--rows",
    "wanted",
    callback=_rows,
    help="Only these, such as P1,P2b, or nodes for C1 to C10. [default: all]",
)
@click.option("--rounds", type=click.IntRange(1), help="Alternating rounds. [default: 7; 3 quick]")
@click.option("--seconds", type=click.FloatRange(1), help="Of load in a round. [default: 3; 1]")
@click.option("--quick", is_flag=True, help="Fleets and crowds a tenth as large, short rounds.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--strict", is_flag=True, help="Fail if a goal is missed or not measured.")
@click.option("--urgent", is_flag=True, help="Ahead of all other work on this machine, as root.")
@click.option("--serve", default="", help="More flags for `forewarned serve`.")
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where servers keep state. [default: /var/tmp, which is on a disk]",
)
def main(
    wanted: set[str],
    rounds: int | None,
    seconds: float | None,
    scratch: Path | None,
    serve: str,
    *,
    quick: bool,
    as_json: bool,
    strict: bool,
    urgent: bool,
) -> None:
    """Measure Forewarned beside nginx and its peers, and say which goals are met.

    A run of all rows of a family (server, nodes) that is not quick is kept in benchmarks/results,
    docs/assets and docs/scale.md.
    """
    if not usage.is_readable():
        raise click.ClickException("processor time is read from /proc, which is Linux's")
    rounds = rounds or (3 if quick else 7)
    if rounds < LEAST_ROUNDS and not quick:
        raise click.ClickException(f"fewer than {LEAST_ROUNDS} rounds say little: see --quick")
    talk = Console(stderr=True)
    programs.install(PACKAGES, talk)
    machine.allow_connections(30_000)
    cores = Cores.of_this_machine()
    conditions = _conditions(cores, rounds, urgent=urgent)
    talk.print(str(cores))
    cores.load_from_here()
    with (
        tempfile.TemporaryDirectory(prefix="forewarned-bench-", dir=_disk(scratch)) as folder,
        machine.first_in_the_queue() if urgent else contextlib.nullcontext(),
    ):
        bench = Bench(
            cores=cores,
            rounds=rounds,
            seconds=seconds or (1 if quick else 3),
            shrink=10 if quick else 1,
            scratch=Path(folder),
            flags=tuple(shlex.split(serve)),
            say=talk.print,
        )
        lines = _measure(bench, wanted, talk)
    if as_json:
        click.echo(records.as_json(lines, conditions))
    else:
        Console().print(page.table(lines))
        click.echo(page.notes(lines))
    whole = [name for name, rows in groups.FAMILIES.items() if wanted.issuperset(rows)]
    for family in () if quick else whole:
        command = _command(family, serve, rounds, urgent=urgent)
        own = [line for line in lines if line.row in groups.FAMILIES[family]]
        for path in records.keep(family, own, conditions, command):
            talk.print(f"wrote {path.relative_to(records.ROOT)}")
    if quick or not whole:
        talk.print("kept nothing: only a run that is not quick and has all rows of a family is")
    raise SystemExit(_exit_code(lines, strict=strict))


def _measure(bench: Bench, wanted: Collection[str], talk: Console) -> list[Line]:
    lines: list[Line] = []
    for group in groups.GROUPS:
        if not (rows := set(group.rows) & set(wanted)):
            continue
        for line in groups.measure(group, bench, rows):
            said = f"  {line.row} {line.what}: {page.result(line)} ({line.verdict}) {line.note}"
            talk.print(said, markup=False, highlight=False, soft_wrap=True)
            lines.append(line)
    return sorted(lines, key=lambda line: groups.ROWS.index(line.row))


def _conditions(cores: Cores, rounds: int, *, urgent: bool) -> dict[str, str]:
    # The day a measurement was made on, which no server needs to know.
    today = datetime.now(UTC).strftime("%Y-%m-%d")  # noqa: TID251
    facts = machine.description()
    return {
        "Measured": f"{today}, {rounds} alternating rounds after one to warm up",
        "Cores": str(cores),
        "Machine": f"{facts['processor']}, {facts['cores']} cores, Linux {facts['kernel']},"
        f" Python {facts['python']}",
        "Other programs": programs.versions(),
        "Load average before": facts["load"]
        + (", but the benchmark ran at a higher priority (nice -15)" if urgent else ""),
    }


def _disk(scratch: Path | None) -> Path | None:
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
        return scratch
    # /tmp is often in memory, where a commit costs nothing.
    disk = Path("/var/tmp")  # noqa: S108
    return disk if disk.is_dir() else None


def _command(family: str, serve: str, rounds: int, *, urgent: bool) -> str:
    given = {
        f"--rows {family}": True,
        "--urgent": urgent,
        f"--rounds {rounds}": rounds != 7,
        f"--serve '{serve}'": bool(serve),
    }
    arguments = [argument for argument, is_given in given.items() if is_given]
    return f'make bench ARGS="{" ".join(arguments)}"'


def _exit_code(lines: Collection[Line], *, strict: bool) -> int:
    bad = {Verdict.FAILED}
    if strict:
        bad |= {Verdict.MISSED, Verdict.NOT_MEASURED, Verdict.NOT_OFFERED}
    return int(any(line.verdict in bad for line in lines))


if __name__ == "__main__":
    main()
