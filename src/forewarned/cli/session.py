"""What every command that talks to the server has in common: where it is, and how to print.

`--json`, `--control` and the like may stand before or after any command's name, and the last one
counts; so they live in the context's `meta`, which all parts of a command line share.
"""

import re
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import click

from forewarned.cli.credentials import credential_options, credentials_of, noting
from forewarned.cli.failures import CommandError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from forewarned.cli.connection import Answer, Control

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_CONTROL: Final = "127.0.0.1:8170"
CONTROL_VARIABLE: Final = "FOREWARNED_CONTROL"
_TRAILING: Final = re.compile(r" +$", re.MULTILINE)
_JSON: Final = "forewarned.json"
_CONTROL: Final = "forewarned.control"


json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=noting(_JSON),
    help="Print the result as JSON.",
)


def _control_option(**more: Any) -> Callable[[F], F]:  # whatever click's options take
    return click.option(
        "--control",
        metavar="HOST:PORT|URL",
        expose_value=False,
        callback=noting(_CONTROL),
        help=f"Address of the server's control listener [env: {CONTROL_VARIABLE};"
        f" default: {DEFAULT_CONTROL}].",
        **more,
    )


control_option = _control_option()
control_option_or_variable = _control_option(envvar=CONTROL_VARIABLE)


def wants_json(context: click.Context) -> bool:
    return bool(context.meta.get(_JSON, False))


def control_address(context: click.Context) -> str:
    return str(context.meta.get(_CONTROL, DEFAULT_CONTROL))


def is_control_named(context: click.Context) -> bool:
    """Whether the address of the control listener was given."""
    return _CONTROL in context.meta


class Session:
    """One command's run."""

    def __init__(self, address: str = "") -> None:
        """Where the control listener is, if not where the command line says."""
        self._context = click.get_current_context()
        self.address = address or control_address(self._context)
        self.is_json = wants_json(self._context)

    @cached_property
    def control(self) -> "Control":
        from forewarned.cli.connection import Control

        control = Control(
            self.address, credentials=credentials_of(self._context), transport=self._context.obj
        )
        return self._context.with_resource(control)

    @cached_property
    def out(self) -> "Console":
        from rich.console import Console

        # Names and descriptions are not markup, and colours stand for type and status alone.
        return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)

    def now(self) -> datetime:
        """The server's clock: every time left is counted by it."""
        from forewarned.control.v1.wire import Clock

        return self.control.get("/v1/clock").read(Clock).now

    def show(self, answer: "Answer", page: "Callable[[], Iterable[RenderableType]]") -> None:
        """The answer as it came with `--json`, else the page; no page is made in vain."""
        if self.is_json:
            click.echo(answer.as_json())
        else:
            self.print(page())

    def print(self, lines: "Iterable[RenderableType]") -> None:
        for line in lines:
            with self.out.capture() as printed:
                # Not cropped: a command to copy is one line, however long.
                self.out.print(line, crop=False)
            # Tables pad their last column, which shows when output is kept or compared.
            self.out.file.write(_TRAILING.sub("", printed.get()))


def with_session(function: Callable[Concatenate[Session, P], None]) -> Callable[P, None]:
    """Give a command its session, and the options that every such command takes."""

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        function(Session(), *args, **kwargs)

    return control_option(credential_options(json_option(update_wrapper(call, function))))


def printed_as_json(value: object) -> bool:
    """Whether `--json` was given: then the value is printed, and nothing is left to print."""
    if not wants_json(click.get_current_context()):
        return False
    import msgspec

    click.echo(msgspec.json.encode(value))
    return True


def report(error: CommandError, context: click.Context) -> None:
    """To stderr: what went wrong, and what to do next."""
    if not wants_json(context):
        click.echo(f"{click.style('error:', fg='red', bold=True)} {error.message}", err=True)
        for advice in error.advice:
            click.echo(advice, err=True)
        return
    import msgspec

    message = error.details or error.message
    described = {"code": error.code, "message": message, "field": error.field}
    body = error.body or msgspec.json.encode({"error": described})
    click.echo(msgspec.json.format(body, indent=-1).decode(), err=True)
