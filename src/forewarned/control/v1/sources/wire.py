"""The JSON that requests about sources are answered with."""

from datetime import datetime
from typing import Annotated

from forewarned.control.v1.wire import Shape, about
from forewarned.service.sources.notes import SourceState
from forewarned.service.sources.writes import Written


class ListingBegins(Shape, frozen=True):
    began_at: Annotated[datetime, about("to be sent back with the listing")]


class SourceChanges(Shape, frozen=True):
    """The VMs that a listing has added, changed and removed in the fleet, by name."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


class ShownSource(Shape, frozen=True):
    name: Annotated[str, about("the name of the actuator whose platform it lists")]
    holder: Annotated[str, about("who listed it last")]
    every: Annotated[float, about("seconds between two listings")]
    reported_at: Annotated[datetime | None, about("when it reported last")]
    complete_at: Annotated[
        datetime | None, about("when it was last listed completely; null: not yet")
    ]
    vms: Annotated[int, about("VMs in the fleet that come from it")]
    silent: Annotated[dict[str, str], about("hosts that did not answer, each with the reason")]
    error: Annotated[str, about("why the platform could not be listed; empty if it could")]
    remarks: Annotated[tuple[str, ...], about("remarks about some of the VMs that it lists")]
    more_remarks: Annotated[int, about("how many more remarks there are")]


class SourceList(Shape, frozen=True):
    sources: tuple[ShownSource, ...]


def shown(state: SourceState) -> ShownSource:
    return ShownSource(
        name=state.name,
        holder=state.holder,
        every=state.every.total_seconds(),
        reported_at=state.reported_at,
        complete_at=state.complete_at,
        vms=state.vms,
        silent=dict(state.silent),
        error=state.error,
        remarks=state.remarks,
        more_remarks=state.more_remarks,
    )


def changes(written: Written) -> SourceChanges:
    return SourceChanges(added=written.added, changed=written.changed, removed=written.removed)
