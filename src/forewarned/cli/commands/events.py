"""Reading: events, and the explanation of one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from forewarned.cli import lookup, pages
from forewarned.cli.parameters import (
    complete_vm,
    event_argument,
    read_span,
    scope_option,
    type_option,
)
from forewarned.cli.session import Session, with_session
from forewarned.config.durations import parse_duration
from forewarned.control.v1 import wire

F = TypeVar("F", bound=Callable[..., Any])


def vm_option(help: str) -> Callable[[F], F]:
    return click.option("--vm", metavar="NAME", help=help, shell_complete=complete_vm)


@click.command()
@click.option("--all", "all_", is_flag=True, help="Include events that are over.")
@vm_option("Only events of this VM.")
@scope_option("Only events of this scope.")
@type_option("Only events of this type.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="At most N events, the newest."
)
@click.option("--watch", is_flag=True, help="Keep showing changes as they happen, until Ctrl-C.")
@click.option(
    "--reconnect",
    type=read_span,
    metavar="SPAN",
    default="1m",
    show_default=True,
    help="With --watch: how long to keep trying to reconnect when the server is gone.",
)
@with_session
def events(
    session: Session,
    *,
    all_: bool,
    vm: str | None,
    scope: str | None,
    type_: str | None,
    limit: int | None,
    watch: bool,
    reconnect: str,
) -> None:
    """List the open events, oldest first.

    With --watch, a terminal shows a table that is kept up to date; otherwise each change is printed
    as a line, or with --json as one JSON object per line. If the server restarts meanwhile,
    watching resumes with the first change that was missed.
    """
    if watch:
        from forewarned.cli.watch import Wanted, watch_changes

        if all_ or limit is not None:
            raise click.UsageError("--watch shows open events only: omit --all and --limit")
        patience = parse_duration(reconnect)
        watch_changes(session, Wanted(vm=vm, scope=scope, type=type_), patience=patience)
        return
    query = {
        "status": "all" if all_ else "open",
        "vm": vm,
        "scope": scope,
        "type": type_,
        "limit": limit,
    }
    answer = session.control.get("/v1/events", query)
    if session.is_json:
        click.echo(answer.as_json())
        return
    found = answer.read(wire.Events).events
    none = "no events" if all_ else "no open events"
    session.print(pages.event_page(found, now=session.now(), none=none))
    if not found:
        doubt(session, query)


@click.command()
@event_argument
@with_session
def explain(session: Session, event: str) -> None:
    """Explain what EVENT is waiting for, and what comes next.

    Also shows who approved it, why it is in its status, and its history.

    EVENT is an id, or the first characters of one; omit it if only one event is open.
    """
    answer = session.control.get(f"{lookup.event_path(session.control, event)}/explain")
    session.show(answer, lambda: pages.explanation_page(answer.read(wire.Explained)))


def doubt(session: Session, query: Mapping[str, str | int | None]) -> None:
    # Not an error: events of VMs that are gone can be asked for, too.
    asked = {what: str(query[what]) for what in ("vm", "scope") if query[what] is not None}
    for line in lookup.doubts(session.control, asked) if asked else ():
        click.echo(line, err=True)
