"""What is said of a subscription on a command line: its target, its shape and its filter."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from forewarned.cli.failures import UsageError
from forewarned.cli.parameters import (
    complete_scope,
    complete_type,
    complete_vm,
    given,
    read_event_type,
)
from forewarned.core.model import EventSource
from forewarned.service.subscriptions.model import PublishedStatus
from forewarned.service.subscriptions.shapes import ShapeName
from forewarned.targets.urls import is_http

F = TypeVar("F", bound=Callable[..., Any])

_FILTERS: Final = ("types", "statuses", "sources", "scopes", "vms")
_OPTIONS: Final = (
    click.option(
        "--url-file",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Read the URL from this file, or from standard input for '-': a URL with secrets does"
        " not belong on a command line.",
    ),
    click.option(
        "--shape",
        type=click.Choice([shape.value for shape in ShapeName]),
        help="What messages look like [default: cloudevents].",
    ),
    click.option(
        "--template",
        "template_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Your own text: a file with a Jinja2 template.",
    ),
    click.option(
        "--content-type", metavar="TYPE", help="Media type of the text that --template makes."
    ),
    click.option(
        "--every-scope",
        is_flag=True,
        help="With --shape event-grid: also publish events of scopes whose policy does not ask for"
        " it.",
    ),
    click.option(
        "--type",
        "types",
        type=read_event_type,
        multiple=True,
        metavar="TYPE",
        shell_complete=complete_type,
        help="Only events of this type. May be repeated, like the options below.",
    ),
    click.option(
        "--status",
        "statuses",
        type=click.Choice([status.value for status in PublishedStatus], case_sensitive=False),
        multiple=True,
        metavar="STATUS",
        help="Only when events reach this status: Scheduled, Approved, Started, Completed, Canceled"
        " or Stalled.",
    ),
    click.option(
        "--source",
        "sources",
        type=click.Choice([source.value for source in EventSource], case_sensitive=False),
        multiple=True,
        help="Only events of this source.",
    ),
    click.option(
        "--scope",
        "scopes",
        multiple=True,
        metavar="GLOB",
        shell_complete=complete_scope,
        help="Only events of scopes whose id matches, like 'vmss/api/*'.",
    ),
    click.option(
        "--vm",
        "vms",
        multiple=True,
        metavar="GLOB",
        shell_complete=complete_vm,
        help="Only events of VMs whose name matches, like 'web-*'.",
    ),
    click.option(
        "--secret-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Sign with the secrets in this file, one per line [default: the server makes one].",
    ),
    click.option(
        "--ca-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="File with the CA certificates that sign the web service's certificate.",
    ),
)


def declaring_options(function: F) -> F:
    """The options that a `Given` is made of."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """As the options name it."""

    url_file: Path | None
    shape: str | None
    template_file: Path | None
    content_type: str | None
    every_scope: bool
    secret_file: Path | None
    ca_file: Path | None
    types: tuple[str, ...]
    statuses: tuple[str, ...]
    sources: tuple[str, ...]
    scopes: tuple[str, ...]
    vms: tuple[str, ...]

    def as_shape(self) -> dict[str, object]:
        """Empty if nothing is said of it."""
        text = None if self.template_file is None else _read(self.template_file)
        return given(
            kind=self.shape or (None if text is None else ShapeName.TEMPLATE.value),
            template=text,
            content_type=self.content_type,
            every_scope=self.every_scope or None,
        )

    def as_filter(self) -> dict[str, list[str]]:
        """Empty if it takes all."""
        return {name: list(found) for name in _FILTERS if (found := getattr(self, name))}

    def url(self, named: str | None) -> str | None:
        """The one that is named, else that of --url-file; None if there is neither.

        Raises UsageError.
        """
        if named is not None and self.url_file is not None:
            raise UsageError("name a URL or --url-file, not both", code="two_urls")
        return named if self.url_file is None else _read_url(self.url_file)

    def as_target(self, url: str) -> dict[str, object]:
        """Raises UsageError."""
        if is_http(url):
            secrets = None if self.secret_file is None else _read(self.secret_file).split()
            ca = None if self.ca_file is None else _read(self.ca_file)
            return given(kind="webhook", url=url, secrets=secrets, ca=ca)
        if self.secret_file is not None or self.ca_file is not None:
            raise UsageError(
                "--secret-file and --ca-file are for web services, whose URL begins with https://",
                code="not_a_webhook",
            )
        return {"kind": "apprise", "url": url}


def _read_url(file: Path) -> str:
    is_stdin = str(file) == "-"
    where = "standard input" if is_stdin else str(file)
    try:
        text = sys.stdin.read() if is_stdin else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(where, error) from error
    lines = text.strip().splitlines()
    if not lines:
        raise UsageError(f"{where} contains no URL", code="no_url")
    if len(lines) > 1:
        raise UsageError(
            f"{where} has {len(lines)} lines, but must contain one URL", code="two_urls"
        )
    return lines[0]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(str(file), error) from error


def _unreadable(where: str, error: OSError | UnicodeDecodeError) -> UsageError:
    why = error.strerror if isinstance(error, OSError) else "it is not text"
    return UsageError(f"can't read {where}: {why}", code="unreadable_file")
