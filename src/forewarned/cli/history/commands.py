"""History: listing it, and the commands below it."""

from datetime import datetime

import click

from forewarned.cli.commands.events import doubt
from forewarned.cli.history.export import export
from forewarned.cli.history.filters import filter_options, filters
from forewarned.cli.history.verification import verify
from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import history_table
from forewarned.control.v1 import wire


@click.group(invoke_without_command=True, commands=[export, verify])
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


def _refuse_options_in_front(context: click.Context, command: str) -> None:
    given = [name.rstrip("_") for name, value in context.params.items() if value is not None]
    if given:
        raise click.UsageError(
            f"give --{given[0]} after {command}: see 'forewarned history {command} --help'"
        )
