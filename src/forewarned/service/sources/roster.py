"""What a listing changes among the VMs that a source has brought into the fleet. Pure.

Invariants: a VM leaves the fleet only after two complete listings, some time apart, have lacked it.
A host that does not answer makes a listing incomplete, so it never removes the VMs that are on it.
A source changes its own VMs alone, and none while an event of it is Started: that VM is the
actuator's. Nor does a listing that began before such an event ended: it may be older than what the
actuator did.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from forewarned.service.sources.listing import ListedVm, Listing

APART: Final = timedelta(seconds=15)
"""Between two listings that count as two. Several nodes may list the same platform at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """What one source has listed, by UUIDs."""

    brought: frozenset[str] = frozenset()
    """VMs that it had in the fleet after its last listing."""
    missed: Mapping[str, datetime] = field(default_factory=dict)
    """VMs that complete listings have lacked, since when."""
    departed: Mapping[str, datetime] = field(default_factory=dict)
    """VMs that have left the fleet by an event or an operator, and are listed still, since when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """The fleet as a source sees it, beside what it lists."""

    own: frozenset[str] = frozenset()
    """The UUIDs of the VMs that it has brought."""
    others: frozenset[str] = frozenset()
    """The UUIDs of VMs that a fleet file, an operator or another source has declared."""
    differing: frozenset[str] = frozenset()
    """Those of its own that the fleet has on another host, or with another address, than listed."""
    busy: frozenset[str] = frozenset()
    """Those of its own with an event that is Started, or was when the listing began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    added: tuple[ListedVm, ...]
    changed: tuple[ListedVm, ...]
    """As they are now: moved, or with another address."""
    removed: tuple[str, ...]
    """By their UUIDs."""
    roster: Roster
    """With all of that taken in."""

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.changed or self.removed)


def compare(
    roster: Roster, listing: Listing, fleet: FleetView, *, began_at: datetime, now: datetime
) -> Difference:
    """`began_at` is when the listing began, by the clock that `now` is read from."""
    seen = {vm.vm_id: vm for vm in listing.vms}
    departed = _departed(roster, seen, fleet, began_at=began_at, now=now)
    added = {key: vm for key, vm in seen.items() if _is_new(key, fleet) and key not in departed}
    changed = [seen[key] for key in seen if key in fleet.differing - fleet.busy]
    missed = _missed(roster, listing, fleet, now=now)
    removed = [key for key in missed if _is_due(roster.missed.get(key), began_at=began_at)]
    if not listing.is_complete:
        removed = []
    return Difference(
        added=tuple(added.values()),
        changed=tuple(changed),
        removed=tuple(removed),
        roster=Roster(
            brought=(fleet.own | added.keys()) - frozenset(removed),
            missed={key: at for key, at in missed.items() if key not in removed},
            departed=departed,
        ),
    )


def _is_new(key: str, fleet: FleetView) -> bool:
    return key not in fleet.own and key not in fleet.others


def _departed(
    roster: Roster,
    seen: Mapping[str, ListedVm],
    fleet: FleetView,
    *,
    began_at: datetime,
    now: datetime,
) -> dict[str, datetime]:
    """An event may end a VM a moment before the platform does, so it does not come back at once."""
    left = {key: now for key in sorted(roster.brought) if key in seen and _is_new(key, fleet)}
    since = left | dict(roster.departed)
    return {
        key: at
        for key, at in since.items()
        if key in seen and _is_new(key, fleet) and not _is_due(at, began_at=began_at)
    }


def _missed(
    roster: Roster, listing: Listing, fleet: FleetView, *, now: datetime
) -> dict[str, datetime]:
    seen = {vm.vm_id for vm in listing.vms}
    absent = fleet.own - seen - fleet.busy
    if not listing.is_complete:
        return {key: at for key, at in roster.missed.items() if key in absent}
    return {key: roster.missed.get(key, now) for key in sorted(absent)}


def _is_due(since: datetime | None, *, began_at: datetime) -> bool:
    """Whether a listing that began then is another one."""
    return since is not None and began_at - since >= APART
