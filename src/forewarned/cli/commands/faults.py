"""Faults of an emulator: listing, adding and removing them."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

import click
from rich.console import RenderableType

from forewarned.cli.lookup import suggesting_vms
from forewarned.cli.parameters import complete_fault, complete_vm, given, read_span
from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import fault_table
from forewarned.cli.wording import count
from forewarned.control.v1 import wire

_KINDS = (
    "status",
    "delay",
    "empty",
    "reset",
    "truncated",
    "stale",
    "malformed",
    "unknown-fields",
    "unknown-event",
)


@click.group(invoke_without_command=True)
@with_session
def faults(session: Session) -> None:
    """List an emulator's faults, add some, or remove them.

    A fault makes something go wrong between VMs and the emulator, so that you can test handlers
    against it. Faults are kept in memory: a restart removes them.
    """
    if click.get_current_context().invoked_subcommand is None:
        _list(session)


@faults.command()
@click.argument("kind", metavar="KIND", type=click.Choice(_KINDS, case_sensitive=False))
@click.option(
    "--status", type=click.IntRange(400, 599), metavar="CODE", help="For kind status, like 500."
)
@click.option(
    "--retry-after",
    type=read_span,
    metavar="SPAN",
    help="For kind status: the value of Retry-After.",
)
@click.option(
    "--delay", type=read_span, metavar="SPAN", help="Delay the response; works with any kind."
)
@click.option(
    "--times",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many times to use it [default: until it is removed].",
)
@click.option(
    "--vm", metavar="NAME", shell_complete=complete_vm, help="Only for this VM [default: every VM]."
)
@click.option(
    "--method",
    type=click.Choice(("get", "post"), case_sensitive=False),
    help="Reads (get) or approvals (post) [default: both].",
)
@with_session
def add(session: Session, /, *, vm: str | None, method: str | None, **fault: object) -> None:
    """Add a fault of KIND, from now on.

    KIND is status (respond with an error), delay, empty (no body), reset (no response at all),
    truncated (half a response), stale (documents stay as they are now), malformed (half a document
    in a whole response), unknown-fields or unknown-event (documents with made-up
    fields, or with a made-up event).
    """
    method = None if method is None else method.upper()
    body = given(vm=vm, method=method, **fault)
    with suggesting_vms(session.control, [] if vm is None else [vm]):
        answer = session.control.post("/v1/faults", body)
    session.show(answer, lambda: [fault_table([answer.read(wire.Fault)])])


@faults.command("list")
@with_session
def list_(session: Session) -> None:
    """List the faults, and how many times each was used. The same as 'forewarned faults'."""
    _list(session)


@faults.command()
@click.argument("fault", metavar="[FAULT]", default="", shell_complete=complete_fault)
@with_session
def clear(session: Session, fault: str) -> None:
    """Remove the fault with the id FAULT; or every fault, if you omit it."""
    if fault:
        answer = session.control.delete(f"/v1/faults/{quote(fault, safe='')}")
        session.show(answer, lambda: _removed([answer.read(wire.Fault)]))
    else:
        answer = session.control.delete("/v1/faults")
        session.show(answer, lambda: _removed(answer.read(wire.Faults).faults))


def _list(session: Session) -> None:
    answer = session.control.get("/v1/faults")
    session.show(answer, lambda: _page(answer.read(wire.Faults).faults))


def _page(found: Sequence[wire.Fault]) -> Iterator[RenderableType]:
    yield fault_table(found) if found else "no faults: every VM gets its normal response"


def _removed(gone: Sequence[wire.Fault]) -> Iterator[RenderableType]:
    yield f"removed {count(len(gone), 'fault')}"
