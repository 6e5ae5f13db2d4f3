"""Waiting for an event to be approved, to start or to complete: for scripts and tests."""

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from forewarned.cli import lookup, pages
from forewarned.cli.failures import RefusedError
from forewarned.cli.parameters import event_argument, read_span
from forewarned.cli.session import Session, with_session
from forewarned.clock import monotonic
from forewarned.config.durations import format_duration, parse_duration
from forewarned.control.v1 import wire

if TYPE_CHECKING:
    from forewarned.cli.connection import Answer

_A_REQUEST: Final = timedelta(seconds=20)
"""How long one request waits: shorter than the read timeout, and Ctrl-C works in between."""


@click.command()
@event_argument
@click.option(
    "--for",
    "milestone",
    type=click.Choice(["approved", "started", "completed"]),
    default="approved",
    show_default=True,
    help="What to wait for.",
)
@click.option(
    "--timeout",
    type=read_span,
    metavar="SPAN",
    default="5m",
    show_default=True,
    help="How long to wait, in real time.",
)
@with_session
def wait(session: Session, event: str, *, milestone: str, timeout: str) -> None:
    """Wait until EVENT is approved, has started or is completed.

    Fails on timeout, and at once if what it waits for can no longer happen: the event was canceled,
    or it started without an approval.

    EVENT is an id, or the first characters of one; omit it if only one event is open.
    """
    answer = _answer(session, lookup.event_path(session.control, event), milestone, timeout)
    session.show(
        answer,
        lambda: pages.event_page((answer.read(wire.Event),), now=session.now(), none="no event"),
    )


def _answer(session: Session, path: str, milestone: str, timeout: str) -> "Answer":
    """The event that is there. Raises RefusedError where it is not."""
    deadline = monotonic() + parse_duration(timeout)
    while True:
        left = max(deadline - monotonic(), timedelta(0))
        query = {"wait": milestone, "timeout": format_duration(min(left, _A_REQUEST))}
        answer = session.control.get(path, query)
        event = answer.read(wire.Event)
        if _is_there(event, milestone):
            return answer
        came_to = f"the event {event.event_id} is {event.status} and was not {milestone}"
        why = f"'forewarned explain {event.event_id[:8]}' says why."
        if event.ended_at is not None or (milestone == "approved" and event.status != "Scheduled"):
            raise RefusedError(came_to, why, code=f"never_{milestone}")
        if not left:
            raise RefusedError(f"{came_to} within {timeout}", why, code="wait_timeout")


def _is_there(event: wire.Event, milestone: str) -> bool:
    if milestone == "approved":
        return event.approval is not None
    return event.status == "Completed" or (milestone == "started" and event.started_at is not None)
