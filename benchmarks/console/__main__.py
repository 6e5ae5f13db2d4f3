"""`python -m benchmarks.console`: every page and every live update, beside its goal."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from playwright.sync_api import Error as WindowError
from rich.console import Console

from benchmarks import machine, page, product, records, usage
from benchmarks.console import busy_fleet, living, loading, windows
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Verdict
from benchmarks.programs import MissingProgramError
from benchmarks.started import StartError

_PAGE: Final = records.ROOT / "docs" / "console.md"
_COMMAND: Final = ".venv/bin/python -m benchmarks.console"
_MOST_ROUNDS: Final = 8
"""as many scopes as the first page of the list has, shared among all that changes one"""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--rounds", default=5, show_default=True, type=click.IntRange(1, _MOST_ROUNDS), help="Of each."
)
@click.option("--only", type=click.Choice(["load", "live"]), help="One half of it.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--keep", is_flag=True, help="Write them into docs/console.md too.")
@click.option("--strict", is_flag=True, help="Fail if a goal is missed.")
def main(rounds: int, only: str | None, *, as_json: bool, keep: bool, strict: bool) -> None:
    """Measure the console in Chromium: 10,000 VMs in 200 scopes, 500 open events.

    The server's own part is processor time, so that it means something on a busy machine too.
    """
    if keep and only is not None:
        raise click.ClickException("only a whole run is kept: leave --only out")
    if not usage.is_readable():
        raise click.ClickException("processor time is read from /proc, which is Linux's")
    talk = Console(stderr=True)
    conditions = _conditions(rounds)
    try:
        lines = list(_measure(rounds, only, talk))
    except (MissingProgramError, StartError, BrokenExchangeError, WindowError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(records.as_json(lines, conditions))
    else:
        Console().print(page.table(lines))
        for line in lines:
            if line.note:
                click.echo(f"{line.row} {line.what}: {line.note}")
    if keep:
        body = page.section(lines, conditions, _COMMAND)
        _PAGE.write_text(page.refresh(_PAGE.read_text(), "console", body))
        talk.print(f"wrote {_PAGE.relative_to(records.ROOT)}")
    raise SystemExit(int(strict and any(line.verdict is Verdict.MISSED for line in lines)))


def _measure(rounds: int, only: str | None, talk: Console) -> Iterator[Line]:
    with (
        tempfile.TemporaryDirectory(prefix="forewarned-console-") as folder,
        # Time stands still but for steps: events are open for as long as they are measured with.
        product.serving(Path(folder), busy_fleet.fleet_file(), "--clock", "paused") as server,
        windows.chromium() as browser,
    ):
        fleet = busy_fleet.fill(server)
        talk.print(f"{len(fleet.scopes)} scopes, {busy_fleet.OPEN_EVENTS} open events")
        parts = {"load": loading.measure, "live": living.measure}
        for name, part in parts.items():
            if only not in (None, name):
                continue
            for line in part(server, browser, fleet, rounds=rounds):
                said = f"  {line.row} {line.what}: {page.result(line)} ({line.verdict})"
                talk.print(said, markup=False, highlight=False, soft_wrap=True)
                yield line


def _conditions(rounds: int) -> dict[str, str]:
    # The day a measurement was made on, which no server needs to know.
    today = datetime.now(UTC).strftime("%Y-%m-%d")  # noqa: TID251
    facts = machine.description()
    return {
        "Measured": f"{today}, {rounds} rounds of each",
        "Machine": f"{facts['processor']}, {facts['cores']} cores, Linux {facts['kernel']},"
        f" Python {facts['python']}",
        "Load average before": facts["load"],
    }


if __name__ == "__main__":
    main()
