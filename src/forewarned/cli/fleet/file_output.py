"""Where commands that make fleet files write them."""

from pathlib import Path

import click
import msgspec

from forewarned.cli.session import wants_json
from forewarned.control.fleet import wire
from forewarned.control.fleet.file import parse_fleet

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="The file to write [default: stdout].",
)


def write_fleet(text: str, output: Path | None, *, source: str) -> None:
    """As TOML, or as JSON if that is wanted. `source` names the fleet in mistakes."""
    if wants_json(click.get_current_context()):
        plan = parse_fleet(text, source=source)
        text = msgspec.json.encode(wire.to_wire(plan)).decode() + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(output), hint=error.strerror) from error
