"""`forewarned subscription`: who is told of events, and how the deliveries fare."""

import sys
from typing import Any, Final
from urllib.parse import quote

import click

from forewarned.cli.connection import WATCHING
from forewarned.cli.failures import CommandError, UsageError
from forewarned.cli.parameters import complete_subscription, given
from forewarned.cli.session import Session, with_session
from forewarned.cli.subscriptions.declaration import Given, declaring_options
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

_PATH: Final = "/v1/subscriptions"

_name = click.argument("name", metavar="NAME", shell_complete=complete_subscription)


@click.group()
def subscription() -> None:
    """Tell web services, chats and pagers about events.

    A subscription says where messages go, what they look like, and which events they are about.
    Each message is delivered at least once, those of a scope in order.
    """


@subscription.command()
@click.argument("name", metavar="NAME")
@click.argument("url", metavar="[URL]", required=False)
@declaring_options
@with_session
def add(session: Session, /, *, name: str, url: str | None, **options: Any) -> None:  # see Given
    """Send messages about events to URL, from now on.

    URL is that of a web service, https://…, which gets a POST for each message and can verify its
    signature. Or it is an Apprise URL, such as slack://… or mailto://…, for people. Apprise URLs
    contain secrets: give them in a file, or on standard input, with --url-file.
    """
    declared = Given(**options)
    place = declared.url(url)
    if place is None:
        raise UsageError("name a URL, or a file that contains it with --url-file", code="no_url")
    body = {
        "name": name,
        "target": declared.as_target(place),
        "shape": declared.as_shape(),
        "filter": declared.as_filter(),
    }
    answer = session.control.post(_PATH, body)
    session.show(answer, lambda: added_page(answer.read(AddedSubscription)))


@subscription.command()
@_name
@click.option("--url", metavar="URL", help="Where messages go from now on, pending ones included.")
@click.option(
    "--all", "takes_all", is_flag=True, help="Remove the filter: send messages about all events."
)
@declaring_options
@with_session
def change(
    session: Session,
    /,
    *,
    name: str,
    url: str | None,
    takes_all: bool,
    **options: Any,  # see Given
) -> None:
    """Change where messages go, what they look like, or which events they are about.

    What you don't name stays as it is. If you choose events, your options replace the whole filter.
    """
    declared = Given(**options)
    place = declared.url(url)
    if place is None and (declared.secret_file is not None or declared.ca_file is not None):
        raise UsageError("--secret-file and --ca-file need --url or --url-file", code="no_url")
    wanted = declared.as_filter()
    body = given(
        target=None if place is None else declared.as_target(place),
        shape=declared.as_shape() or None,
        filter={} if takes_all else wanted or None,
    )
    if not body or (takes_all and wanted):
        why = (
            "--all can't be combined with options that choose events"
            if body
            else "name what to change"
        )
        raise UsageError(why, "See 'forewarned subscription change --help'.", code="nothing_given")
    answer = session.control.patch(_path(name), body)
    session.show(answer, lambda: added_page(answer.read(AddedSubscription), verb="changed"))


@subscription.command("list")
@with_session
def list_(session: Session) -> None:
    """List subscriptions, with the state of their deliveries."""
    answer = session.control.get(_PATH)
    session.show(
        answer, lambda: list_page(answer.read(SubscriptionList).subscriptions, now=wall_clock())
    )


@subscription.command()
@_name
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    metavar="N",
    help="At most N messages [default: 10].",
)
@with_session
def show(session: Session, name: str, *, limit: int) -> None:
    """Show a subscription, and its pending and undelivered messages.

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
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N [default: 100].")
@with_session
def deliveries(session: Session, /, name: str, *, state: str | None, limit: int | None) -> None:
    """List the pending and undelivered messages, the oldest first."""
    answer = session.control.get(f"{_path(name)}/deliveries", {"state": state, "limit": limit})
    session.show(
        answer,
        lambda: delivery_page(answer.read(DeliveryList).deliveries, now=wall_clock(), state=state),
    )


@subscription.command()
@_name
@with_session
def test(session: Session, name: str) -> None:
    """Send a test message now, and say whether it was delivered.

    It is about a made-up event, and the event's description says so.
    """
    # The server waits for a target, half a minute at most, longer than other answers take.
    answer = session.control.post(f"{_path(name)}/test", timeout=WATCHING)
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
    """Stop delivering. Messages are kept until you resume.

    But not for ever: the server removes those that are a day older than its setting
    publishing_undelivered_for, which is 30 days by default.
    """
    answer = session.control.post(f"{_path(name)}/pause")
    session.show(answer, lambda: state_page(answer.read(ShownSubscription)))


@subscription.command()
@_name
@with_session
def resume(session: Session, name: str) -> None:
    """Resume delivering, starting with the messages that were kept."""
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
    """Retry now what the server gave up on, and what waits for its next attempt."""
    answer = session.control.post(f"{_path(name)}/redeliver", {"numbers": list(numbers)})
    session.show(answer, lambda: [_redelivered(answer.read(Redelivered).messages, name)])


def _redelivered(messages: int, name: str) -> str:
    are = "is" if messages == 1 else "are"
    return f"{count(messages, 'message')} to {plain(name)} {are} due now"


@subscription.command()
@_name
@with_session
def rotate(session: Session, name: str) -> None:
    """Make a new secret for a web service, and print it. It is shown only once.

    Messages are signed with the new secret and with the one before, so that receivers can change
    over. The next rotation retires the older secret.
    """
    answer = session.control.post(f"{_path(name)}/rotate")
    session.show(answer, lambda: rotated_page(answer.read(AddedSubscription)))


@subscription.command()
@_name
@click.option(
    "--yes", is_flag=True, help="Remove it even if messages are undelivered, without asking."
)
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
    click.confirm(f"{what}. Remove the subscription all the same?", abort=True)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
