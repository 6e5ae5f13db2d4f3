"""`forewarned history export`: all of it, into a file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from forewarned.cli.failures import RefusedError
from forewarned.cli.history.filters import filter_options, filters
from forewarned.cli.session import Session, with_session
from forewarned.cli.wording import count


@click.command()
@filter_options
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="jsonl: one JSON object per line; csv: a table.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write [default: stdout].",
)
@with_session
def export(
    session: Session,
    /,
    *,
    event: str | None,
    type_: str | None,
    since: datetime | None,
    until: datetime | None,
    format_: str,
    output: Path | None,
    **query: str | None,
) -> None:
    """Write history into a file, oldest first, however much there is.

    FILE appears under its name only once it is complete. In CSV, cells that a spreadsheet would
    take for a formula begin with an apostrophe.
    """
    wanted = {
        **query,
        **filters(session, event=event, type_=type_, since=since, until=until),
        "format": format_,
    }
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal or output is None,
    )
    rows = -1 if format_ == "csv" else 0
    with bar, _opened(output) as file:
        task = bar.add_task("exporting")
        for piece in session.control.download("/v1/history/export", wanted):
            file.write(piece)
            rows += piece.count(b"\n")
            bar.update(task, description=f"exporting: {count(max(rows, 0), 'line')}")
    if output is not None and not session.is_json:
        click.echo(f"exported history to {output}", err=True)


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        return
    draft = output.with_name(f"{output.name}.part")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(output)
    except OSError as error:
        raise RefusedError(
            f"can't write {output}: {error.strerror or error}", code="unwritable"
        ) from error
    finally:
        draft.unlink(missing_ok=True)
