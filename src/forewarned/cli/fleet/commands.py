"""The fleet: showing it, and applying a fleet file."""

from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from forewarned.cli import pages
from forewarned.cli.failures import RefusedError
from forewarned.cli.fleet import apply as fleet_apply
from forewarned.cli.fleet.generation import generate
from forewarned.cli.fleet.platform_import import import_
from forewarned.cli.session import Session, json_option, printed_as_json, with_session
from forewarned.cli.tables import PlannedRow, plan_table
from forewarned.cli.wording import count, mistakes_of
from forewarned.control.fleet import wire as fleet_wire
from forewarned.control.fleet.file import FleetFileError, load_fleet
from forewarned.control.v1 import wire
from forewarned.core.errors import RefusalError
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.fleet.placement import PlannedScope
from forewarned.service.fleet.plan import Expansion

_file_argument = click.argument(
    "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False)
)


@click.group(commands=[generate, import_])
def fleet() -> None:
    """Show the fleet, or apply a fleet file."""


@fleet.command()
@with_session
def show(session: Session) -> None:
    """List every VM, grouped by scope."""
    answer = session.control.get("/v1/fleet")
    session.show(answer, lambda: pages.fleet_page(answer.read(wire.Scopes), now=session.now()))


@fleet.command()
@_file_argument
@click.option("--prune", is_flag=True, help="Remove VMs that the file does not name.")
@with_session
def apply(session: Session, *, file: Path, prune: bool) -> None:
    """Change the server's fleet to match FILE: all of it, or nothing.

    A fleet of more than 10,000 VMs is checked as a whole, then written in parts.
    """
    plan = _load(file, besides="; nothing has changed")
    query = {"prune": "true"} if prune else None
    # On stderr, and on a terminal only: what stdout gets is the same wherever it goes.
    console = Console(stderr=True, quiet=session.is_json)
    answer = fleet_apply.apply(session.control, plan, query, console=console)
    session.show(answer, lambda: pages.applied_page(answer.read(wire.FleetApplied)))


@fleet.command()
@_file_argument
@json_option
def check(file: Path) -> None:
    """Show the fleet that FILE describes, or its mistakes. Needs no server."""
    plan = _load(file)
    rows: list[PlannedRow] = []
    hosts: set[str] = set()
    for each in _expand(plan, file):
        rows.append(_row(each))
        hosts.update(vm.host for vm in each.scope.resources.values())
    if printed_as_json(fleet_wire.to_wire(plan)):
        return
    session, vms = Session(), sum(row.vms for row in rows)
    session.print([plan_table(rows), ""] if rows else [])
    session.print(
        [f"{count(vms, 'VM')} in {count(len(rows), 'scope')} on {count(len(hosts), 'host')}"]
    )


def _load(file: Path, *, besides: str = "") -> FleetPlan:
    try:
        return load_fleet(file)
    except FleetFileError as error:
        raise _refusal(file, error, besides) from error


def _expand(plan: FleetPlan, file: Path) -> Iterator[PlannedScope]:
    """One after another: a large fleet need not be in memory whole."""
    from forewarned.cli.commands.serve import load_settings

    # This command talks to no server, so a FOREWARNED_CONTROL that can't be read is no mistake.
    settings = load_settings(None, {"control": "127.0.0.1:0"}).settings
    try:
        # The server knows the addresses in use and may give others; how many fit is the same.
        yield from Expansion(plan, address_range=settings.address_range, kept={}).scopes()
    except RefusalError as error:
        raise _refusal(file, FleetFileError([f"{file}: {error}"])) from error


def _refusal(file: Path, error: FleetFileError, besides: str = "") -> RefusedError:
    headline, *mistakes = mistakes_of(file, error)
    return RefusedError(
        f"{headline}{besides}",
        *mistakes,
        code="invalid_fleet",
        field="fleet",
        details=str(error),
    )


def _row(planned: PlannedScope) -> PlannedRow:
    vms = planned.scope.resources
    return PlannedRow(
        scope=planned.scope.id,
        kind=planned.scope.kind,
        vms=len(vms),
        update_domains=len({vm.update_domain for vm in vms.values()}),
        names=tuple(vms),
    )
