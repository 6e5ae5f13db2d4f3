"""Approving, canceling and completing events."""

from collections.abc import Iterator, Sequence

import click
from rich.console import RenderableType

from forewarned.cli import lookup, pages
from forewarned.cli.parameters import event_argument
from forewarned.cli.session import Session, with_session
from forewarned.control.v1 import wire


@click.command()
@event_argument
@with_session
def approve(session: Session, event: str) -> None:
    """Approve EVENT, so that it starts before its NotBefore.

    EVENT is an id, or the first characters of one; omit it if only one event can be approved.
    """
    path = f"{lookup.event_path(session.control, event, lookup.APPROVABLE)}/approve"
    answer = session.control.post(path)
    session.show(answer, lambda: _approved(session, answer.read(wire.Event)))


def _approved(session: Session, event: wire.Event) -> Iterator[RenderableType]:
    yield from _page(session, (event,))
    if event.ended_at is not None:
        yield "It was already over: nothing has changed."
    elif event.status == "Started":
        health = session.control.get("/v1/health").read(wire.Health)
        yield from pages.completion_page((event,), health)


@click.command()
@event_argument
@click.option("--reason", metavar="TEXT", default="", help="Why, for the history.")
@with_session
def cancel(session: Session, event: str, reason: str) -> None:
    """Cancel EVENT, with all of the maintenance it belongs to.

    EVENT is an id, or the first characters of one; omit it if only one event can be canceled. An
    event that has started can't be canceled.
    """
    path = f"{lookup.event_path(session.control, event, lookup.CANCELABLE)}/cancel"
    answer = session.control.post(path, {"reason": reason})
    session.show(answer, lambda: _page(session, answer.read(wire.Events).events))


@click.command()
@event_argument
@with_session
def complete(session: Session, event: str) -> None:
    """Report that the work of EVENT, which has started, is done.

    EVENT is an id, or the first characters of one; omit it if only one event has started.

    An emulator completes events by itself after a while, and so does a server in service mode whose
    actuators carry events out. For VMs without an actuator, an operator does the work, and then
    runs this command.
    """
    path = f"{lookup.event_path(session.control, event, lookup.STARTED)}/complete"
    answer = session.control.post(path)
    session.show(answer, lambda: _page(session, (answer.read(wire.Event),)))


def _page(session: Session, events: Sequence[wire.Event]) -> Iterator[RenderableType]:
    return pages.event_page(events, now=session.now(), none="no event is affected")
