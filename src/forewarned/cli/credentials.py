"""The token that the CLI sends to a server, and the certificate it trusts that server by.

A token comes from FOREWARNED_TOKEN or from a file. There is no option for it: all users of
a machine can read how programs were started. Invariant: no message shows a token.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from typing_extensions import override

from forewarned.cli.failures import GET_ADMITTED, UsageError

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE: Final = "FOREWARNED_TOKEN"
CA_VARIABLE: Final = "FOREWARNED_CA"

_SHOWN: Final = "forewarned.token"
_FILE: Final = "forewarned.token_file"
_CA: Final = "forewarned.ca"
_LONGEST: Final = 16 * 1024
# RFC 6750, section 2.1: what can follow `Bearer`.
_SHAPE: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    token: str = field(default="", repr=False)
    """Empty for none."""
    ca: Path | None = None
    """PEM to trust an HTTPS server by, and by nothing else; None for what the system trusts."""


class _VariableOnly(click.Option):
    """An option that can't be typed: it only comes from the environment."""

    @override
    def add_to_parser(
        self, parser: Any, ctx: click.Context
    ) -> None:  # click keeps its type private
        pass


def noting(key: str) -> Callable[[click.Context, click.Parameter, object], None]:
    """A callback that puts what was given into the context's `meta`."""

    def note(context: click.Context, _: click.Parameter, value: object) -> None:
        if value:
            context.meta[key] = value

    return note


def trust_unless_given(context: click.Context, ca: Path) -> None:
    """Trust a server by this certificate, if it is there and no other was given."""
    if ca.is_file():
        context.meta.setdefault(_CA, ca)


def _token_file_option() -> Callable[[F], F]:
    return click.option(
        "--token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="PATH",
        expose_value=False,
        callback=noting(_FILE),
        help=f"File with the token to send to the server [default: the token in {VARIABLE}].",
    )


def _ca_option(**more: Any) -> Callable[[F], F]:  # whatever click's options take
    return click.option(
        "--ca",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="PATH",
        expose_value=False,
        callback=noting(_CA),
        help="Certificate to trust for an HTTPS server, as PEM"
        f" [env: {CA_VARIABLE}; default: what the system trusts].",
        **more,
    )


def credential_options(function: F) -> F:
    return _token_file_option()(_ca_option()(function))


def credential_options_or_variables(function: F) -> F:
    token = click.option(
        "--token",
        cls=_VariableOnly,
        hidden=True,
        expose_value=False,
        envvar=VARIABLE,
        callback=noting(_SHOWN),
    )
    return token(_token_file_option()(_ca_option(envvar=CA_VARIABLE)(function)))


def credentials_of(context: click.Context) -> Credentials:
    """Read only now: commands that ask no server need no token. Raises UsageError."""
    file, ca = context.meta.get(_FILE), context.meta.get(_CA)
    if file is not None:
        token = _checked(_read(file), f"the file {file}", at="token_file")
    elif typed := context.meta.get(_SHOWN):
        token = _checked(typed, VARIABLE, at="token")
    else:
        token = ""
    return Credentials(token=token, ca=ca)


def _read(file: Path) -> str:
    try:
        # Not all of it, which may be without end; and a pipe of a shell is a file too.
        with file.open("rb") as opened:
            return opened.read(_LONGEST + 1).decode("ascii", errors="replace")
    except OSError as error:
        raise UsageError(
            f"can't read the token file {file} ({error.strerror})",
            GET_ADMITTED,
            code="bad_token",
            field="token_file",
        ) from error


def _checked(text: str, where: str, *, at: str) -> str:
    token = text.strip()
    if len(token) > _LONGEST or not _SHAPE.fullmatch(token):
        raise UsageError(
            f"{where} contains no token: it must contain only the token, as it was printed",
            GET_ADMITTED,
            code="bad_token",
            field=at,
        )
    return token
