"""Types of parameters, options that commands share, and completion from the running server."""

import math
import re
import shlex
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem
from typing_extensions import override

from forewarned.cli.credentials import credentials_of
from forewarned.cli.failures import CommandError
from forewarned.cli.lookup import fault_ids, host_names, open_event_ids, scope_ids, vm_names
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


class Span(click.ParamType[str]):
    """A duration, sent on as it was typed: the server reads the same forms."""

    name = "span"

    @override
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parse_duration(value)
        except InvalidDurationError as error:
            self.fail(str(error), param, ctx)
        return value


class Instant(click.ParamType[datetime]):
    """A point in time with its offset, which only then means the same everywhere."""

    name = "instant"

    @override
    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            found = None
        if found is None or found.tzinfo is None:
            self.fail(f"{value!r} is not an instant: write it like {AN_INSTANT}", param, ctx)
        return found


class Expiry(click.ParamType[datetime]):
    """A span from now on, a date or an instant: when something ends, by this machine's clock."""

    name = "expiry"

    @override
    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        now = wall_clock().replace(microsecond=0)
        found = _expiry(str(value), now)
        if found is None:
            self.fail(
                f"{value!r} is not in the future: write it like 30d, 2027-01-31 or {AN_INSTANT}",
                param,
                ctx,
            )
        if found <= now:
            self.fail(f"{value!r} is not in the future", param, ctx)
        return found


def _expiry(text: str, now: datetime) -> datetime | None:
    """A date is its first moment, in UTC. None for anything else."""
    try:
        return now + parse_duration(text)
    except (InvalidDurationError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None
    return found.replace(tzinfo=UTC) if _DATE.fullmatch(text) else None


class Speed(click.ParamType[float]):
    """`60x`, `0.5x`, or just the number."""

    name = "speed"

    @override
    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            speed = float(str(value).removesuffix("x").removesuffix("×"))
        except ValueError:
            speed = math.nan
        # JSON has no word for what is not finite.
        if not math.isfinite(speed):
            self.fail(f"{value!r} is not a speed: write it like 60x", param, ctx)
        return speed


class EventTypeName(click.ParamType[str]):
    """In any letter case; the API has them capitalised."""

    name = "type"

    @override
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value.lower() not in EVENT_TYPES:
            self.fail(f"{value!r} is not one of {', '.join(EVENT_TYPES)}", param, ctx)
        return value.capitalize()

    @override
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(t) for t in EVENT_TYPES if t.startswith(incomplete.lower())]


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
        "--type", "type_", type=EventTypeName(), metavar="TYPE", default=default, help=help
    )


def plan_options(function: F) -> F:
    """Options that single events and maintenance share."""
    options = (
        click.option(
            "--notice",
            type=Span(),
            metavar="SPAN",
            help="Time from now to NotBefore, like 15m [default: the minimum of its type].",
        ),
        click.option(
            "--short-notice",
            is_flag=True,
            help="Allow a notice below the minimum of its type; emulators only.",
        ),
        click.option(
            "--duration", type=Span(), metavar="SPAN", help="How long the impact will take."
        ),
        click.option("--description", metavar="TEXT", help="Description to show to the VMs."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def given(**values: object) -> dict[str, object]:
    """A request's body, without what was not given: that is left to the server."""
    return {name: value for name, value in values.items() if value is not None}
