"""Sources: the platforms that the fleet is kept in step with."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from urllib.parse import quote

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import frameless
from forewarned.cli.wording import ago, count, listing, plain
from forewarned.control.v1.sources.wire import ShownSource, SourceList


@click.group()
def sources() -> None:
    """See the platforms that the fleet is kept in step with.

    An actuator with a table [[sources]] lists the VMs of its platform again and again. The server
    adds, changes and removes them in the fleet.
    """


@sources.command("list")
@with_session
def list_sources(session: Session) -> None:
    """Show how the last listing of each platform went."""
    answer = session.control.get("/v1/sources")
    session.show(answer, lambda: _page(answer.read(SourceList).sources, now=session.now()))


@sources.command()
@click.argument("name", metavar="NAME")
@with_session
def forget(session: Session, *, name: str) -> None:
    """Forget the source NAME, which no longer reports.

    A source that still reports can't be forgotten. The VMs of the source stay in the fleet. From
    then on 'fleet apply --prune' removes those that the fleet file does not name.
    """
    answer = session.control.delete(f"/v1/sources/{quote(name, safe='')}")
    session.show(answer, lambda: _forgotten(answer.read(ShownSource)))


def _page(found: Sequence[ShownSource], *, now: datetime) -> Iterator[RenderableType]:
    if not found:
        yield "no source has reported a listing yet"
        return
    yield _table(found, now=now)
    for source in found:
        for remark in source.remarks:
            yield plain(f"{source.name}: {remark}")
        if source.more_remarks:
            yield plain(f"{source.name}: and {count(source.more_remarks, 'more remark')}")


def _table(found: Sequence[ShownSource], *, now: datetime) -> Table:
    table = frameless("Source", "VMs", "Listed completely", "Last report", "By")
    for source in found:
        complete = "never" if source.complete_at is None else ago(source.complete_at, now)
        table.add_row(
            plain(source.name),
            str(source.vms),
            complete,
            _last_report(source, now=now),
            plain(source.holder),
        )
    return table


def _last_report(source: ShownSource, *, now: datetime) -> Text:
    when = "" if source.reported_at is None else ago(source.reported_at, now)
    if source.reported_at is not None and now - source.reported_at > _overdue(source):
        return Text(f"{when}, overdue: is its actuator running?", "red")
    if source.error:
        return Text(plain(f"{when}, failed: {source.error}"), "red")
    if source.silent:
        why = listing(f"{host} ({reason})" for host, reason in source.silent.items())
        return Text(f"{when}, without {why}", "yellow")
    return Text(when)


def _overdue(source: ShownSource) -> timedelta:
    """A listing may take two minutes."""
    return timedelta(seconds=2 * source.every + 120)


def _forgotten(source: ShownSource) -> Iterator[RenderableType]:
    yield plain(f"forgot {source.name}; its VMs stay in the fleet: {source.vms}")
