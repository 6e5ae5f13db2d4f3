"""Fleet files of any size, for trying out how the server bears it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import msgspec

from forewarned.cli.session import json_option, wants_json
from forewarned.control.fleet import wire
from forewarned.control.fleet.file import parse_fleet
from forewarned.service.fleet.declaration import PLACEMENT_GROUP_SIZE

KINDS: Final = ("mixed", "scale-sets", "availability-sets", "vms")
ADDRESS_RANGE: Final = "127.64.0.0/10"
"""Loopback, so that one machine can be every VM of the fleet, and far from the built-in one's."""
MOST: Final = 4_000_000
"""As many as that range has addresses for."""

_LARGEST_SET: Final = 1_000
"""What an availability set can count."""
_GROUPS_PER_SET: Final = 100
_SETS_IN: Final = 10
"""Where kinds are mixed, one scope of so many is an availability set."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Scopes of one size."""

    size: int
    scopes: int


def shapes(vms: int, *, scopes: int | None, per_scope: int) -> list[Shape]:
    """As many VMs in each scope as in any other, give or take one; or full scopes and a rest."""
    if scopes is not None:
        size, larger = divmod(vms, scopes)
        found = [Shape(size + 1, larger), Shape(size, scopes - larger)]
    else:
        full, rest = divmod(vms, per_scope)
        found = [Shape(per_scope, full), Shape(rest, 1)]
    return [shape for shape in found if shape.size and shape.scopes]


def fleet_file(found: list[Shape], *, kind: str) -> Iterator[str]:
    """Its lines."""
    vms = sum(shape.size * shape.scopes for shape in found)
    scopes = sum(shape.scopes for shape in found)
    yield f"# {vms:,} VMs in {scopes:,} scopes, made by forewarned fleet generate.\n"
    yield f'address_range = "{ADDRESS_RANGE}"\n'
    first = 0
    for shape in found:
        sets = {"mixed": shape.scopes // _SETS_IN, "availability-sets": shape.scopes}.get(kind, 0)
        if kind == "vms":
            yield from (f'\n[[vms]]\nname = "vm-{n}"\n' for n in range(first, first + shape.scopes))
        else:
            yield from _scale_sets(shape.size, shape.scopes - sets, first)
            yield from _availability_sets(shape.size, sets, first)
        first += shape.scopes


def _scale_sets(size: int, scopes: int, first: int) -> Iterator[str]:
    # Only full placement groups can share a set: all its groups but the last are full.
    per_set = _GROUPS_PER_SET if size == PLACEMENT_GROUP_SIZE else 1
    for number in range(0, scopes, per_set):
        capacity = size * min(per_set, scopes - number)
        yield f'\n[[scale_sets]]\nname = "set-{first + number}"\ncapacity = {capacity}\n'


def _availability_sets(size: int, scopes: int, first: int) -> Iterator[str]:
    for number in range(first, first + scopes):
        yield f'\n[[availability_sets]]\nname = "avset-{number}"\ncount = {size}\n'


@click.command()
@click.option("--vms", type=click.IntRange(1, MOST), required=True, help="How many VMs.")
@click.option("--scopes", type=click.IntRange(1), help="How many scopes they are spread over.")
@click.option(
    "--per-scope",
    type=click.IntRange(1, _LARGEST_SET),
    help=f"How many VMs share a document [default: {PLACEMENT_GROUP_SIZE}].",
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="mixed",
    show_default=True,
    help="What the scopes are; mixed is scale sets, and availability sets here and there.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="The file to write, rather than stdout.",
)
@json_option
def generate(
    *, vms: int, scopes: int | None, per_scope: int | None, kind: str, output: Path | None
) -> None:
    """Print a fleet file of as many VMs as wanted, for benchmarks. Needs no server."""
    if scopes is not None and per_scope is not None:
        raise click.UsageError("give either --scopes or --per-scope")
    default = 1 if kind == "vms" else PLACEMENT_GROUP_SIZE
    found = shapes(vms, scopes=scopes, per_scope=per_scope or default)
    _refuse_too_large(max(shape.size for shape in found), kind)
    text = "".join(fleet_file(found, kind=kind))
    if wants_json(click.get_current_context()):
        plan = parse_fleet(text, source="the generated fleet")
        text = msgspec.json.encode(wire.to_wire(plan)).decode() + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(output), hint=error.strerror) from error


def _refuse_too_large(size: int, kind: str) -> None:
    most = {"vms": 1, "availability-sets": _LARGEST_SET}.get(kind, PLACEMENT_GROUP_SIZE)
    if size > most:
        raise click.UsageError(
            f"{size:,} VMs would share a document, and of --kind {kind} at most {most:,} can"
        )
