"""Resetting an emulator."""

from collections.abc import Iterator

import click
from rich.console import RenderableType

from forewarned.cli.connection import ENDLESS
from forewarned.cli.session import Session, with_session
from forewarned.cli.wording import count, listing
from forewarned.control.v1 import wire


@click.command()
@with_session
def reset(session: Session) -> None:
    """Reset an emulator to its state at startup, as between tests.

    Afterwards the fleet is as declared, no event is open, there are no faults, every scope is
    switched off until a VM reads its document, and the clock runs as fast as at startup. Time does
    not go back, incarnations keep rising, and the history stays.
    """
    answer = session.control.post("/v1/reset", timeout=ENDLESS)
    session.show(answer, lambda: _page(answer.read(wire.ResetDone)))


def _page(done: wire.ResetDone) -> Iterator[RenderableType]:
    yield f"ended {count(done.events, 'event')}, removed {count(done.faults, 'fault')}"
    if done.added:
        yield f"VMs restored: {listing(done.added)}"
    if done.removed:
        yield f"VMs removed: {listing(done.removed)}"
