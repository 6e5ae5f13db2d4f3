"""`forewarned record`: what an endpoint says, to a file."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from forewarned.cli.failures import RefusedError, UnreachableError, UsageError
from forewarned.config.durations import InvalidDurationError, parse_duration

if TYPE_CHECKING:
    from forewarned.client import ScheduledEvents
    from forewarned.recordings.recorder import Recorder

_MEGABYTE: Final = 1_000_000


def _read_pause(text: str) -> timedelta:
    try:
        pause = parse_duration(text)
    except InvalidDurationError as error:
        raise click.BadParameter(str(error)) from error
    if pause < timedelta(milliseconds=200):
        # Azure allows a VM five requests a second, for all its programs together.
        raise click.BadParameter(
            "the endpoint is read at most five times a second: write 200ms or more"
        )
    return pause


@click.command()
@click.argument("url", metavar="[URL]", required=False)
@click.option(
    "--to",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    required=True,
    help="The file to record to; an existing recording is continued.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Replace names, and the ids of subscriptions, events and VMs, with stand-ins: always the"
    " same one for the same name or id.",
)
@click.option(
    "--every",
    type=_read_pause,
    metavar="SPAN",
    default="1s",
    show_default=True,
    help="How often to read the endpoint.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="MB",
    default=100,
    show_default=True,
    help="Stop when FILE has reached this size.",
)
@click.option("--api-version", metavar="VERSION", default="2020-07-01", show_default=True)
def record(
    url: str | None,
    *,
    path: Path,
    anonymous: bool,
    every: timedelta,
    limit: int,
    api_version: str,
) -> None:
    """Record what the endpoint at URL says, until interrupted.

    Without URL, the endpoint is looked for in the places where a VM finds it. It is only read:
    nothing is approved. A line is written when the response differs from the previous one, and when
    there is no response; the line is on disk before the endpoint is read again. 'forewarned serve
    --replay FILE' plays the file back.
    """
    from forewarned.client import EndpointNotFoundError, ScheduledEvents
    from forewarned.recordings.file import (
        FullError,
        UnusableFileError,
        anonymity_of,
        appending,
    )
    from forewarned.recordings.recorder import Recorder

    try:
        client = ScheduledEvents(url, api_version=api_version)
    except ValueError as error:
        raise UsageError(str(error), code="bad_endpoint", field="url") from error
    try:
        with (
            client,
            appending(path, limit=limit * _MEGABYTE, anonymous=anonymous) as file,
        ):
            anonymity = anonymity_of(path) if anonymous else None
            _record(client, Recorder(file, anonymity), api_version=api_version, every=every)
    except UnusableFileError as error:
        raise RefusedError(str(error), code="unusable_file", field="to") from error
    except FullError as error:
        raise RefusedError(
            str(error), "Record to another file, or with a higher --limit.", code="file_full"
        ) from error
    except OSError as error:
        raise RefusedError(
            f"can't write {path}: {error.strerror or error}", code="unusable_file", field="to"
        ) from error
    except EndpointNotFoundError as error:
        raise UnreachableError(
            str(error), "Name the endpoint: forewarned record URL --to FILE", code="no_endpoint"
        ) from error


def _record(
    client: "ScheduledEvents", recorder: "Recorder", *, api_version: str, every: timedelta
) -> None:
    from forewarned.cli.recording.line import told
    from forewarned.clock import wall_clock

    vm = _own_name(client)
    endpoint = client.contact().endpoint or ""
    recorder.begin(wall_clock(), endpoint=endpoint, api_version=api_version, vm=vm)
    click.echo(f"recording {endpoint}; stop with Ctrl-C")
    with _interrupted_by_sigterm(), suppress(KeyboardInterrupt):
        for exchange in client.exchanges(poll=every):
            outcome = recorder.take(exchange)
            if outcome is not None:
                click.echo(told(outcome))
    recorder.stop(wall_clock())


def _own_name(client: "ScheduledEvents") -> str:
    from forewarned.client import EndpointNotFoundError, ScheduledEventsError

    try:
        return client.me().name
    except EndpointNotFoundError:
        raise
    except ScheduledEventsError:
        told = "the endpoint does not say which VM this is, so the recording won't either"
        click.echo(told, err=True)
        return ""


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """What ends a service ends this in the same way as Ctrl-C."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
