"""`forewarned subscription`: who is told of events, and how the deliveries fare."""

import sys
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click

from forewarned.cli.failures import CommandError, UsageError
from forewarned.cli.parameters import (
    complete_scope,
    complete_subscription,
    complete_type,
    complete_vm,
    given,
    read_event_type,
)
from forewarned.cli.session import Session, with_session
from forewarned.cli.subscriptions.pages import (
    added_page,
    delivery_page,
    list_page,
    rotated_page,
    show_page,
    state_page,
)
from forewarned.cli.wording import count, plain
from forewarned.clock import wall_clock
from forewarned.control.v1.subscriptions.wire import (
    AddedSubscription,
    DeliveryList,
    Redelivered,
    ShownSubscription,
    SubscriptionList,
    Tested,
)
from forewarned.core.model import EventSource
from forewarned.service.subscriptions.model import PublishedStatus
from forewarned.service.subscriptions.targets import ShapeName

_PATH: Final = "/v1/subscriptions"
_WEB: Final = ("http://", "https://")

_name = click.argument("name", metavar="NAME", shell_complete=complete_subscription)


@click.group()
def subscription() -> None:
    """Tell web services, chats and pagers of events.

    A subscription says where messages go, what they look like, and which events they are of. Each
    message is delivered at least once, those of a scope in order.
    """


@subscription.command()
@click.argument("name", metavar="NAME")
@click.argument("url", metavar="URL")
@click.option(
    "--shape",
    type=click.Choice([shape.value for shape in ShapeName]),
    help="What messages look like [default: cloudevents].",
)
@click.option(
    "--template",
    "template_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A text of your own: a Jinja2 template.",
)
@click.option("--content-type", metavar="TYPE", help="What the text of --template is.")
@click.option(
    "--every-scope",
    is_flag=True,
    help="With --shape event-grid: also scopes whose policy does not ask for it.",
)
@click.option(
    "--type",
    "types",
    type=read_event_type,
    multiple=True,
    metavar="TYPE",
    shell_complete=complete_type,
    help="Only events of this type. May be repeated, like the options below.",
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice([status.value for status in PublishedStatus], case_sensitive=False),
    multiple=True,
    metavar="STATUS",
    help="Only when events become this: Scheduled, Approved, Started, Completed, Canceled or"
    " Stalled.",
)
@click.option(
    "--source",
    "sources",
    type=click.Choice([source.value for source in EventSource], case_sensitive=False),
    multiple=True,
    help="Only events of this source.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="GLOB",
    shell_complete=complete_scope,
    help="Only events of scopes with such an id: 'vmss/api/*'.",
)
@click.option(
    "--vm",
    "vms",
    multiple=True,
    metavar="GLOB",
    shell_complete=complete_vm,
    help="Only events of VMs with such a name: 'web-*'.",
)
@click.option(
    "--secret-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Sign with the secrets in this file, one in each line [default: the server makes one].",
)
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Trust a web service whose certificate is signed by those in this file.",
)
@with_session
def add(
    session: Session,
    /,
    *,
    name: str,
    url: str,
    shape: str | None,
    template_file: Path | None,
    content_type: str | None,
    every_scope: bool,
    secret_file: Path | None,
    ca_file: Path | None,
    **wanted: tuple[str, ...],
) -> None:
    """Send messages of events to URL, from now on.

    URL is a web service's, https://…, which gets a POST for each message and can verify its
    signature. Or it is one of Apprise's, such as slack://… or mailto://…, for people.
    """
    text = None if template_file is None else _read(template_file)
    body = {
        "name": name,
        "target": _target(url, secret_file=secret_file, ca_file=ca_file),
        "shape": given(
            kind=shape or (None if text is None else ShapeName.TEMPLATE.value),
            template=text,
            content_type=content_type,
            every_scope=every_scope or None,
        ),
        "filter": {key: list(values) for key, values in wanted.items() if values},
    }
    answer = session.control.post(_PATH, body)
    session.show(answer, lambda: added_page(answer.read(AddedSubscription)))


def _target(url: str, *, secret_file: Path | None, ca_file: Path | None) -> dict[str, object]:
    if url.lower().startswith(_WEB):
        secrets = None if secret_file is None else _read(secret_file).split()
        ca = None if ca_file is None else _read(ca_file)
        return given(kind="webhook", url=url, secrets=secrets, ca=ca)
    if secret_file is not None or ca_file is not None:
        raise UsageError(
            "--secret-file and --ca-file are for web services, whose URL begins with https://",
            code="not_a_webhook",
        )
    return {"kind": "apprise", "url": url}


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"can't read {file}: {why}", code="unreadable_file") from error


@subscription.command("list")
@with_session
def list_(session: Session) -> None:
    """List subscriptions, with how their deliveries fare."""
    answer = session.control.get(_PATH)
    session.show(
        answer, lambda: list_page(answer.read(SubscriptionList).subscriptions, now=wall_clock())
    )


@subscription.command()
@_name
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, metavar="N", help="At most N messages [10]."
)
@with_session
def show(session: Session, name: str, *, limit: int) -> None:
    """Show a subscription, and which messages are on their way or were given up.

    With --json, only the subscription.
    """
    answer = session.control.get(_path(name))
    if session.is_json:
        click.echo(answer.as_json())
        return
    found = [
        session.control.get(f"{_path(name)}/deliveries", {"state": state, "limit": limit}).read(
            DeliveryList
        )
        for state in ("undelivered", "pending")
    ]
    deliveries = [each for listed in found for each in listed.deliveries]
    session.print(show_page(answer.read(ShownSubscription), deliveries, now=wall_clock()))


@subscription.command()
@_name
@click.option(
    "--state", type=click.Choice(("pending", "undelivered")), help="Only those in this state."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N [100].")
@with_session
def deliveries(session: Session, /, name: str, **query: str | int | None) -> None:
    """List the messages that are on their way or were given up, the oldest first."""
    answer = session.control.get(f"{_path(name)}/deliveries", query)
    session.show(
        answer,
        lambda: delivery_page(answer.read(DeliveryList).deliveries, now=wall_clock()),
    )


@subscription.command()
@_name
@with_session
def test(session: Session, name: str) -> None:
    """Send a test message now, and say whether it was delivered.

    It is of an event that there is not, and receivers see that: its description says so.
    """
    answer = session.control.post(f"{_path(name)}/test")
    found = answer.read(Tested)
    if not found.delivered and not session.is_json:
        raise CommandError(
            f"the test message was not delivered: {plain(found.reason)}", code="not_delivered"
        )
    session.show(answer, lambda: [f"delivered a test message to {plain(name)}"])
    if not found.delivered:
        click.get_current_context().exit(1)


@subscription.command()
@_name
@with_session
def pause(session: Session, name: str) -> None:
    """Stop delivering. Messages are kept until you resume."""
    answer = session.control.post(f"{_path(name)}/pause")
    session.show(answer, lambda: state_page(answer.read(ShownSubscription)))


@subscription.command()
@_name
@with_session
def resume(session: Session, name: str) -> None:
    """Deliver again, what was kept first."""
    answer = session.control.post(f"{_path(name)}/resume")
    session.show(answer, lambda: state_page(answer.read(ShownSubscription)))


@subscription.command()
@_name
@click.option(
    "--number",
    "numbers",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Only this message, as 'forewarned subscription show' numbers it. May be repeated.",
)
@with_session
def redeliver(session: Session, name: str, *, numbers: tuple[int, ...]) -> None:
    """Try again now what was given up, and what waits for its next attempt."""
    answer = session.control.post(f"{_path(name)}/redeliver", {"numbers": list(numbers)})
    session.show(
        answer,
        lambda: [f"{count(answer.read(Redelivered).messages, 'message')} to {plain(name)} due now"],
    )


@subscription.command()
@_name
@with_session
def rotate(session: Session, name: str) -> None:
    """Make a new secret for a web service, and print it. It is shown only once.

    Messages are signed with the new secret and with the one before, so that receivers can change
    over. The next rotation ends the one before.
    """
    answer = session.control.post(f"{_path(name)}/rotate")
    session.show(answer, lambda: rotated_page(answer.read(AddedSubscription)))


@subscription.command()
@_name
@click.option("--yes", is_flag=True, help="Also if messages are still to be delivered.")
@with_session
def remove(session: Session, name: str, *, yes: bool) -> None:
    """Remove a subscription, with the messages that were not delivered to it."""
    if not yes:
        _confirm_removal(session, name)
    answer = session.control.delete(_path(name))
    session.show(answer, lambda: [f"removed {plain(answer.read(ShownSubscription).name)}"])


def _confirm_removal(session: Session, name: str) -> None:
    health = session.control.get(_path(name)).read(ShownSubscription).health
    left = health.pending + health.undelivered
    if not left:
        return
    what = f"{count(left, 'message')} to {plain(name)} not delivered"
    if session.is_json or not sys.stdin.isatty():
        raise CommandError(
            f"nothing was removed: {what}",
            "--yes removes them with the subscription.",
            code="messages_left",
        )
    click.confirm(f"There are {what}. Remove them with it?", abort=True)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
