"""Scheduling events: for VMs, for a host, for a whole set."""

import difflib

import click
from typing_extensions import override

from forewarned.cli import lookup, pages
from forewarned.cli.connection import Answer
from forewarned.cli.parameters import (
    EVENT_TYPES,
    complete_host,
    complete_vm,
    given,
    host_argument,
    plan_options,
    scope_option,
    stray_argument,
    type_option,
)
from forewarned.cli.session import Session, with_session
from forewarned.cli.wording import plain
from forewarned.control.v1 import wire


class _Types(click.Group):
    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        typed, *rest = args
        if typed.lower() in EVENT_TYPES:
            return super().resolve_command(ctx, [typed.lower(), *rest])
        # What begins with a dash is an unknown option, and click says so.
        if not typed.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(typed.lower(), EVENT_TYPES, n=1)
            meant = f". Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"{plain(typed)!r} is not an event type ({', '.join(EVENT_TYPES)}){meant}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Types)
def schedule() -> None:
    """Schedule an event for one or more VMs."""


_vms_option = click.option(
    "--vm",
    "vms",
    metavar="NAME",
    multiple=True,
    required=True,
    help="A VM to interrupt; repeat the option for more.",
    shell_complete=complete_vm,
)
_source_option = click.option(
    "--source",
    type=click.Choice(["platform", "user"], case_sensitive=False),
    help="Who causes it [default: user for a reboot, redeploy or terminate, otherwise platform].",
)


def _schedule_command(type_: str) -> click.Command:
    each = "each VM" if type_ == "terminate" else "each scope"

    @click.command(name=type_, help=f"Schedule a {type_.capitalize()}: one event for {each}.")
    @stray_argument(lambda _: ("VMs", "--vm"))
    @_vms_option
    @plan_options
    @_source_option
    @with_session
    def command(
        session: Session, /, *, vms: tuple[str, ...], source: str | None, **plan: object
    ) -> None:
        source = None if source is None else source.capitalize()
        body = given(type=type_.capitalize(), resources=vms, source=source, **plan)
        with lookup.suggesting_vms(session.control, vms):
            answer = session.control.post("/v1/events", body)
        _show(session, answer)

    return command


for _type in EVENT_TYPES:
    schedule.add_command(_schedule_command(_type))


@click.command()
@host_argument
@with_session
def fail(session: Session, host: str) -> None:
    """Treat HOST as failed: events of its VMs start at once."""
    _on_host(session, host, "fail")


@click.command()
@host_argument
@with_session
def predict(session: Session, host: str) -> None:
    """Predict that HOST will fail: its VMs get days of notice."""
    _on_host(session, host, "predict")


def _host_or_scope(names: tuple[str, ...]) -> tuple[str, str]:
    # Only ids of scopes have a slash in them.
    return ("scopes", "--scope") if "/" in names[0] else ("hosts", "--host")


@click.command()
@stray_argument(_host_or_scope)
@click.option("--host", metavar="HOST", help="The host to maintain.", shell_complete=complete_host)
@scope_option("The set to maintain, one update domain after another.")
@type_option("freeze, reboot or redeploy [default: freeze].", default="freeze")
@plan_options
@with_session
def maintain(
    session: Session, /, *, host: str | None, scope: str | None, type_: str, **plan: object
) -> None:
    """Maintain a host, or a whole set.

    The VMs of a host are interrupted together, once every scope on it is ready; those of a set one
    update domain after another.
    """
    body = given(type=type_, **plan)
    if host is not None and scope is None:
        with lookup.suggesting_hosts(session.control, host):
            answer = session.control.post(f"{lookup.host_path(host)}/maintain", body)
    elif scope is not None and host is None:
        with lookup.suggesting_scopes(session.control, scope):
            answer = session.control.post(f"{lookup.scope_path(scope)}/maintain", body)
    else:
        raise click.UsageError("give either --host HOST or --scope ID")
    _show(session, answer)


def _on_host(session: Session, host: str, what: str) -> None:
    with lookup.suggesting_hosts(session.control, host):
        answer = session.control.post(f"{lookup.host_path(host)}/{what}")
    _show(session, answer)


def _show(session: Session, answer: Answer) -> None:
    if session.is_json:
        click.echo(answer.as_json())
        return
    found = answer.read(wire.Events).events
    session.print(pages.event_page(found, now=session.now(), none="no VM is affected"))
    if any(not event.announced or event.status == "Started" for event in found):
        health = session.control.get("/v1/health").read(wire.Health)
        session.print(pages.notice_page(found, health))
        session.print(pages.completion_page(found, health))
    session.print(pages.next_steps(found))
