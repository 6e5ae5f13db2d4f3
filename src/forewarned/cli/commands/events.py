"""Reading: events, the explanation of one, and the history."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import click

from forewarned.cli import lookup, pages
from forewarned.cli.parameters import (
    AN_INSTANT,
    complete_event,
    complete_vm,
    event_argument,
    read_instant,
    scope_option,
    type_option,
)
from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import history_table
from forewarned.control.v1 import wire

F = TypeVar("F", bound=Callable[..., Any])


def _vm_option(help: str) -> Callable[[F], F]:
    return click.option("--vm", metavar="NAME", help=help, shell_complete=complete_vm)


@click.command()
@click.option("--all", "all_", is_flag=True, help="Include events that are over.")
@_vm_option("Only events of this VM.")
@scope_option("Only events of this scope.")
@type_option("Only events of this type.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="At most N events, the newest."
)
@click.option("--watch", is_flag=True, help="Keep showing changes as they happen, until Ctrl-C.")
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
) -> None:
    """List the open events, oldest first.

    With --watch, a terminal shows a table that is kept up to date; otherwise each change is printed
    as a line, or with --json as one JSON object per line.
    """
    if watch:
        from forewarned.cli.watch import Wanted, watch_changes

        if all_ or limit is not None:
            raise click.UsageError("--watch shows open events only: omit --all and --limit")
        watch_changes(session, Wanted(vm=vm, scope=scope, type=type_))
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
        _doubt(session, query)


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


@click.command()
@_vm_option("Only what concerns this VM.")
@click.option(
    "--event",
    metavar="EVENT",
    help="Only what happened to this event.",
    shell_complete=complete_event,
)
@scope_option("Only what happened in this scope.")
@type_option("Only what happened to events of this type.")
@click.option("--action", metavar="ACTION", help="Only this action, like started or canceled.")
@click.option("--actor", metavar="NAME", help="Only what this actor did, like cli:ada.")
@click.option(
    "--since",
    type=read_instant,
    metavar="INSTANT",
    help=f"Only from this instant on, like {AN_INSTANT}.",
)
@click.option("--until", type=read_instant, metavar="INSTANT", help="Only before this instant.")
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
    query |= {
        "event": None if event is None else lookup.event_id(session.control, event),
        "type": type_,
        "since": None if since is None else since.isoformat(),
        "until": None if until is None else until.isoformat(),
    }
    answer = session.control.get("/v1/history", query)
    if session.is_json:
        click.echo(answer.as_json())
        return
    found = answer.read(wire.History)
    session.print([history_table(found.history) if found.history else "no history"])
    if found.next is not None:
        session.print([f"There is more: --before {found.next}"])
    if not found.history:
        _doubt(session, query)


def _doubt(session: Session, query: Mapping[str, str | int | None]) -> None:
    # Not an error: events of VMs that are gone can be asked for, too.
    asked = {what: str(query[what]) for what in ("vm", "scope") if query[what] is not None}
    for line in lookup.doubts(session.control, asked) if asked else ():
        click.echo(line, err=True)
