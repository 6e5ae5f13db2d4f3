"""Types of parameters, options that commands share, and completion from the running server."""

import math
import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem
from typing_extensions import override

from forewarned.cli.credentials import credentials_of
from forewarned.cli.failures import CommandError
from forewarned.cli.lookup import (
    fault_ids,
    host_names,
    open_event_ids,
    scope_ids,
    subscription_names,
    vm_names,
)
from forewarned.cli.session import control_address
from forewarned.cli.wording import plain
from forewarned.clock import wall_clock
from forewarned.config.durations import InvalidDurationError, parse_duration
from forewarned.core.model import EventType

if TYPE_CHECKING:
    from forewarned.cli.connection import Control

F = TypeVar("F", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

AN_INSTANT: Final = "2026-11-15T22:00:00Z"
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
EVENT_TYPES: Final = tuple(type_.lower() for type_ in EventType)


def read_span(text: str) -> str:
    """A duration, sent on as it was typed: the server reads the same forms."""
    try:
        parse_duration(text)
    except InvalidDurationError as error:
        raise click.BadParameter(str(error)) from error
    return text


def read_instant(text: str) -> datetime:
    """A point in time with its offset, which only then means the same everywhere."""
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found
    raise click.BadParameter(f"{text!r} is not an instant: write it like {AN_INSTANT}")


def read_expiry(text: str) -> datetime:
    """A span from now on, a date or an instant: when something ends, by this machine's clock."""
    now = wall_clock().replace(microsecond=0)
    found = _end(text, now)
    if found is None:
        raise click.BadParameter(
            f"{text!r} is not an expiry: write it like 30d, 2027-01-31 or {AN_INSTANT}"
        )
    if found <= now:
        raise click.BadParameter(f"{text!r} is not in the future")
    return found


def _end(text: str, now: datetime) -> datetime | None:
    """A date is its first moment, in UTC. None for anything else."""
    with suppress(InvalidDurationError, OverflowError):
        return now + parse_duration(text)
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None
    return found.replace(tzinfo=UTC) if _DATE.fullmatch(text) else None


def read_speed(text: str) -> float:
    """`60x`, `0.5x`, or just the number."""
    with suppress(ValueError):
        found = float(text.removesuffix("x").removesuffix("×"))
        # JSON has no word for what is not finite.
        if math.isfinite(found):
            return found
    raise click.BadParameter(f"{text!r} is not a speed: write it like 60x")


def read_event_type(text: str) -> str:
    """In any letter case; the API has them capitalised."""
    if text.lower() not in EVENT_TYPES:
        raise click.BadParameter(f"{text!r} is not one of {', '.join(EVENT_TYPES)}")
    return text.capitalize()


def complete_type(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [type_ for type_ in EVENT_TYPES if type_.startswith(incomplete.lower())]


def _completer(names: "Callable[[Control], Iterable[str]]") -> Completer:
    def complete(
        context: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        begun = incomplete.casefold()
        found = _ask(context, names)
        return [CompletionItem(one) for one in found if one.casefold().startswith(begun)]

    return complete


def _ask(context: click.Context, names: "Callable[[Control], Iterable[str]]") -> list[str]:
    """Quietly nothing where no server answers at once: a shell is waiting."""
    import httpx2

    from forewarned.cli.connection import Control

    try:
        with Control(
            control_address(context),
            credentials=credentials_of(context),
            timeout=httpx2.Timeout(0.5),
            transport=context.obj,
        ) as control:
            return list(names(control))
    except CommandError:
        return []


complete_vm = _completer(vm_names)
complete_host = _completer(host_names)
complete_scope = _completer(scope_ids)
complete_event = _completer(open_event_ids)
complete_fault = _completer(fault_ids)
complete_subscription = _completer(subscription_names)


class _Stray(click.Argument):
    """A name without the option it belongs to: never accepted, so usage does not show it."""

    @override
    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return []


def stray_argument(explain: Callable[[tuple[str, ...]], tuple[str, str]]) -> Callable[[F], F]:
    """Refuse names without an option, and show the command that was probably meant.

    `explain` says what they are, and which option they need.
    """

    def refuse(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
        if names and not ctx.resilient_parsing:
            what, option = explain(names)
            meant = " ".join(f"{option} {shlex.quote(plain(name))}" for name in names)
            ctx.fail(f"{what} are named with {option}: {ctx.command_path} {meant}")
        return names

    # Eager, so that it comes before a complaint about the option that is missing.
    return click.argument(
        "stray", cls=_Stray, nargs=-1, callback=refuse, expose_value=False, is_eager=True
    )


event_argument = click.argument(
    "event", metavar="[EVENT]", default="", shell_complete=complete_event
)
host_argument = click.argument("host", metavar="HOST", shell_complete=complete_host)


def scope_option(help: str) -> Callable[[F], F]:
    return click.option("--scope", metavar="ID", help=help, shell_complete=complete_scope)


def type_option(help: str, default: str | None = None) -> Callable[[F], F]:
    return click.option(
        "--type",
        "type_",
        type=read_event_type,
        metavar="TYPE",
        default=default,
        help=help,
        shell_complete=complete_type,
    )


def plan_options(function: F) -> F:
    """Options that single events and maintenance share."""
    options = (
        click.option(
            "--notice",
            type=read_span,
            metavar="SPAN",
            help="Time from now to NotBefore, like 15m [default: the minimum for the event type].",
        ),
        click.option(
            "--short-notice",
            is_flag=True,
            help="Allow a notice below the minimum for the event type; emulators only.",
        ),
        click.option(
            "--duration", type=read_span, metavar="SPAN", help="How long the impact will last."
        ),
        click.option("--description", metavar="TEXT", help="Description to show to the VMs."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def given(**values: object) -> dict[str, object]:
    """A request's body, without what was not given: that is left to the server."""
    return {name: value for name, value in values.items() if value is not None}
