"""Applying a fleet: what the server says on the way, as a bar, and what came of it."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import Progress

from forewarned.cli.connection import Answer, Control, refusal
from forewarned.cli.failures import RefusedError, ServerFailedError
from forewarned.cli.progress_bar import progress_bar
from forewarned.control.fleet import wire as fleet_wire
from forewarned.control.v1 import wire
from forewarned.service.fleet.declaration import FleetPlan

# What the API answers with 500 and above, whose status a line does not have.
_FAILURES: Final = frozenset({"internal", "store_unavailable"})


class _Line(msgspec.Struct, frozen=True):
    """Progress, a refusal, or neither: then it is the result."""

    done: int | None = None
    total: int = 0
    error: wire.Error | None = None


def apply(
    control: Control, plan: FleetPlan, query: Mapping[str, str] | None, *, console: Console
) -> Answer:
    """The result. The bar goes to the console, if that is a terminal, and leaves nothing there."""
    lines = control.put_in_lines("/v1/fleet", fleet_wire.to_wire(plan), query)
    with progress_bar(console, unit="VMs") as bar:
        return _follow(lines, bar, address=control.address)


def _follow(lines: Iterable[Answer], bar: Progress, *, address: str) -> Answer:
    task = bar.add_task("applying", total=None)
    for answer in lines:
        line = answer.read(_Line)
        if line.error is not None:
            kind = ServerFailedError if line.error.code in _FAILURES else RefusedError
            raise refusal(kind, line.error, answer.body)
        if line.done is None:
            return answer
        bar.update(task, completed=line.done, total=line.total or None)
    raise ServerFailedError(
        f"the server at {address} went away before the whole fleet was applied",
        "Apply the same file again to continue.",
        code="broken_off",
    )
