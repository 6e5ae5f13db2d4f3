"""The server's clock: showing it, and moving it."""

from collections.abc import Iterator
from datetime import datetime

import click
from rich.console import RenderableType

from forewarned.cli import pages
from forewarned.cli.connection import ENDLESS, Answer
from forewarned.cli.parameters import AN_INSTANT, read_instant, read_span, read_speed
from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import history_table
from forewarned.control.v1 import wire

_MOST_SHOWN = 100


@click.group(invoke_without_command=True)
@with_session
def clock(session: Session) -> None:
    """Show the server's clock, or move it."""
    if click.get_current_context().invoked_subcommand is None:
        _show(session, session.control.get("/v1/clock"))


@clock.command()
@with_session
def show(session: Session) -> None:
    """Show the time and the speed. The same as 'forewarned clock'."""
    _show(session, session.control.get("/v1/clock"))


@clock.command()
@with_session
def pause(session: Session) -> None:
    """Stop the clock."""
    _show(session, session.control.post("/v1/clock/pause"))


@clock.command()
@with_session
def resume(session: Session) -> None:
    """Let the clock run as fast as before the pause."""
    _show(session, session.control.post("/v1/clock/resume"))


@clock.command()
@click.argument("speed", type=read_speed, metavar="SPEED")
@with_session
def speed(session: Session, speed: float) -> None:
    """Let the clock run at SPEED times real time, like 60x."""
    _show(session, session.control.post("/v1/clock/speed", {"speed": speed}))


@clock.command()
@click.argument("span", type=read_span, metavar="[SPAN]", required=False)
@click.option(
    "--to",
    type=read_instant,
    metavar="INSTANT",
    help=f"The instant to go to, instead of SPAN, like {AN_INSTANT}.",
)
@with_session
def step(session: Session, span: str | None, to: datetime | None) -> None:
    """Move the clock forward by SPAN, like 15m.

    Everything that falls due on the way happens, in order and at its own time, before this returns.
    """
    if (span is None) == (to is None):
        raise click.UsageError("give either SPAN or --to INSTANT")
    body = {"by": span} if to is None else {"to": to.isoformat()}
    if session.is_json:
        click.echo(session.control.post("/v1/clock/step", body, timeout=ENDLESS).as_json())
        return
    last = session.control.get("/v1/history", {"limit": 1}).read(wire.History).history
    answer = session.control.post("/v1/clock/step", body, timeout=ENDLESS)
    _show(session, answer)
    session.print(_on_the_way(session, after=last[0].id if last else 0))


def _on_the_way(session: Session, *, after: int) -> Iterator[RenderableType]:
    found = session.control.get("/v1/history", {"limit": _MOST_SHOWN}).read(wire.History)
    rows = [row for row in reversed(found.history) if row.id > after]
    if not rows:
        yield "nothing happened on the way"
        return
    yield ""
    if len(rows) == _MOST_SHOWN:
        yield f"the last {_MOST_SHOWN} of what happened on the way:"
    yield history_table(rows)


def _show(session: Session, answer: Answer) -> None:
    session.show(answer, lambda: [pages.clock_line(answer.read(wire.Clock))])
