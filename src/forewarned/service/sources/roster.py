"""What a listing changes among the VMs that a source has brought into the fleet. Pure.

Invariants: a VM leaves the fleet only after two complete listings, some time apart, have lacked it.
A host that does not answer makes a listing incomplete, so it never removes the VMs that are on it.
A source changes its own VMs alone, and none while an event of it is Started: that VM is the
actuator's.
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

    vms: Mapping[str, ListedVm] = field(default_factory=dict)
    """As the fleet has them. A listing that says the same changes nothing: where an actuator has
    moved a VM since, an older listing must not move it back."""
    missed: Mapping[str, datetime] = field(default_factory=dict)
    """VMs that complete listings have lacked, since when."""
    departed: Mapping[str, datetime] = field(default_factory=dict)
    """VMs that have left the fleet by an event or an operator, and are listed still, since when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How the fleet stands to a source."""

    own: frozenset[str] = frozenset()
    """The UUIDs of the VMs that it has brought."""
    others: frozenset[str] = frozenset()
    """The UUIDs of VMs that a fleet file, an operator or another source has declared."""
    busy: frozenset[str] = frozenset()
    """Those of its own that an event has interrupted, or may from one moment to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    added: tuple[ListedVm, ...]
    changed: tuple[ListedVm, ...]
    """As they are now: renamed, moved, or with another address."""
    removed: tuple[str, ...]
    """By their UUIDs."""
    roster: Roster
    """With all of that taken in."""

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.changed or self.removed)


def compare(roster: Roster, listing: Listing, fleet: Standing, *, now: datetime) -> Difference:
    seen = {vm.vm_id: vm for vm in listing.vms}
    departed = _departed(roster, seen, fleet, now=now)
    added = {key: vm for key, vm in seen.items() if _is_new(key, fleet) and key not in departed}
    changed = {
        key: vm
        for key, vm in seen.items()
        if key in fleet.own and key not in fleet.busy and roster.vms.get(key) != vm
    }
    missed = _missed(roster, listing, fleet, now=now)
    removed = [key for key in missed if _is_due(roster.missed.get(key), now=now)]
    if not listing.is_complete:
        removed = []
    kept = {key: vm for key, vm in roster.vms.items() if key in fleet.own and key not in removed}
    return Difference(
        added=tuple(added.values()),
        changed=tuple(changed.values()),
        removed=tuple(removed),
        roster=Roster(
            vms=kept | changed | added,
            missed={key: at for key, at in missed.items() if key not in removed},
            departed=departed,
        ),
    )


def _is_new(key: str, fleet: Standing) -> bool:
    return key not in fleet.own and key not in fleet.others


def _departed(
    roster: Roster, seen: Mapping[str, ListedVm], fleet: Standing, *, now: datetime
) -> dict[str, datetime]:
    """An event may end a VM a moment before the platform does, so it does not come back at once."""
    left = {key: now for key in roster.vms if key in seen and _is_new(key, fleet)}
    since = left | dict(roster.departed)
    return {
        key: at
        for key, at in since.items()
        if key in seen and _is_new(key, fleet) and not _is_due(at, now=now)
    }


def _missed(
    roster: Roster, listing: Listing, fleet: Standing, *, now: datetime
) -> dict[str, datetime]:
    seen = {vm.vm_id for vm in listing.vms}
    absent = fleet.own - seen - fleet.busy
    if not listing.is_complete:
        return {key: at for key, at in roster.missed.items() if key in absent}
    return {key: roster.missed.get(key, now) for key in sorted(absent)}


def _is_due(since: datetime | None, *, now: datetime) -> bool:
    return since is not None and now - since >= APART
