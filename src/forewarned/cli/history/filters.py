"""Which rows of history: the options, and how `/v1` takes them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

import click

from forewarned.cli import lookup
from forewarned.cli.commands.events import vm_option
from forewarned.cli.parameters import (
    AN_INSTANT,
    complete_event,
    read_instant,
    scope_option,
    type_option,
)
from forewarned.cli.session import Session

F = TypeVar("F", bound=Callable[..., Any])

_SINCE: Final = f"Only from this instant on, like {AN_INSTANT}."
_UNTIL: Final = "Only before this instant."


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
