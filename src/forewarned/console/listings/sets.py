"""Scale sets at a glance, a page of them at a time: what is not shown is not looked at."""

from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.azure.models.scale_set import declared_set
from forewarned.service.azure.resource_ids import ResourceId
from forewarned.service.fleet.declaration import Orchestration
from forewarned.service.ports import Snapshot

SETS_PER_PAGE: Final = 25
"""A list is live: with many sets, each change of one would have the whole fleet looked through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSummary:
    id: ResourceId
    staying: int
    leaving: int
    """Instances that are being deleted."""
    behind: int
    """Instances on an older model than the set's latest."""
    is_flexible: bool
    is_going: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPage:
    sets: tuple[SetSummary, ...]
    has_more: bool


def listed(
    snapshot: Snapshot,
    subscription: str,
    *,
    find: str = "",
    after: str = "",
    limit: int = SETS_PER_PAGE,
) -> SetPage:
    """In order of name: those with `find` in it, behind the name `after`."""
    wanted, last = find.casefold(), after.casefold()
    views = inventory.scale_sets(
        snapshot, subscription, is_wanted=lambda name: name > last and wanted in name
    )
    found = tuple(islice(views, limit + 1))
    return SetPage(sets=tuple(summary(view) for view in found[:limit]), has_more=len(found) > limit)


def summary(view: ScaleSetView) -> SetSummary:
    staying = len(view.staying)
    return SetSummary(
        id=view.id,
        staying=staying,
        leaving=len(view.vms) - staying,
        behind=behind(view),
        is_flexible=declared_set(view).orchestration is Orchestration.FLEXIBLE,
        is_going=view.is_going,
    )


def address_of(id_: ResourceId, **more: str) -> str:
    """Of the page of a set."""
    return f"/sets/edit?{urlencode({'id': id_.path, **more})}"


def behind(view: ScaleSetView) -> int:
    return sum(not view.is_latest(machine) for machine in view.vms)
