"""History: listing it, and the commands below it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from forewarned.cli import lookup
from forewarned.cli.commands.events import doubt, vm_option
from forewarned.cli.history.verification import verify
from forewarned.cli.parameters import (
    AN_INSTANT,
    complete_event,
    read_instant,
    scope_option,
    type_option,
)
from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import history_table
from forewarned.control.v1 import wire

F = TypeVar("F", bound=Callable[..., Any])


def filter_options(function: F) -> F:
    """Which rows: what is not given does not narrow."""
    for option in (
        click.option("--until", type=read_instant, metavar="INSTANT", help=_UNTIL),
        click.option("--since", type=read_instant, metavar="INSTANT", help=_SINCE),
        click.option("--actor", metavar="NAME", help="Only what this actor did, like cli:ada."),
        click.option(
            "--action", metavar="ACTION", help="Only this action, like started or canceled."
        ),
        type_option("Only what happened to events of this type."),
        scope_option("Only what happened in this scope."),
        click.option(
            "--event",
            metavar="EVENT",
            help="Only what happened to this event.",
            shell_complete=complete_event,
        ),
        vm_option("Only what concerns this VM."),
    ):
        function = option(function)
    return function


_SINCE = f"Only from this instant on, like {AN_INSTANT}."
_UNTIL = "Only before this instant."


@click.group(invoke_without_command=True, commands=[verify])
@filter_options
@click.option("--before", type=int, metavar="N", help="Only lines older than line N.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N lines [default: 100].",
)
@with_session
def history(
    session: Session,
    /,
    *,
    event: str | None,
    type_: str | None,
    since: datetime | None,
    until: datetime | None,
    **query: str | int | None,
) -> None:
    """List what happened, newest first.

    Each line says when, what, to which VMs, by whom and why.
    """
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        _refuse_options_in_front(context, context.invoked_subcommand)
        return
    wanted = {**query, **filters(session, event=event, type_=type_, since=since, until=until)}
    answer = session.control.get("/v1/history", wanted)
    if session.is_json:
        click.echo(answer.as_json())
        return
    found = answer.read(wire.History)
    session.print([history_table(found.history) if found.history else "no history"])
    if found.next is not None:
        session.print([f"There is more: --before {found.next}"])
    if not found.history:
        doubt(session, wanted)


def filters(
    session: Session,
    *,
    event: str | None,
    type_: str | None,
    since: datetime | None,
    until: datetime | None,
) -> dict[str, str | None]:
    """As `/v1` takes them."""
    return {
        "event": None if event is None else lookup.event_id(session.control, event),
        "type": type_,
        "since": None if since is None else since.isoformat(),
        "until": None if until is None else until.isoformat(),
    }


def _refuse_options_in_front(context: click.Context, command: str) -> None:
    given = [name.rstrip("_") for name, value in context.params.items() if value is not None]
    if given:
        raise click.UsageError(f"give --{given[0]} after {command}: 'history {command} --help'")
