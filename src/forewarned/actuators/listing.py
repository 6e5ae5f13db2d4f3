"""What a platform says about its VMs, and what that changes in a fleet. Pure.

Invariant: a VM leaves the fleet only after two complete listings in a row have lacked it. A host
that does not answer makes a listing incomplete, so it never removes the VMs that are on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVm:
    """Known by its UUID: another name or host is the same VM, and another UUID another VM."""

    vm_id: str
    name: str
    host: str
    address: str = ""
    """Empty if the platform gives none, and never what the guest itself says."""
    interface: str = ""
    """Its port on the host's bridge; empty if it has no lasting name."""
    availability_set: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    vms: tuple[ListedVm, ...]
    silent: Mapping[str, str] = field(default_factory=dict)
    """Hosts that did not answer, each with the reason."""

    @property
    def is_complete(self) -> bool:
        return not self.silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The VMs that one source has brought into the fleet: it never touches others'."""

    vms: Mapping[str, ListedVm] = field(default_factory=dict)
    """By their UUIDs."""
    missed: frozenset[str] = frozenset()
    """Those that the last complete listing lacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    added: tuple[ListedVm, ...]
    changed: tuple[ListedVm, ...]
    """As they are now: renamed, moved, or with another address."""
    removed: tuple[ListedVm, ...]
    roster: Roster
    """With all of that taken in."""


def compare(roster: Roster, listing: Listing) -> Difference:
    seen = {vm.vm_id: vm for vm in listing.vms}
    absent = roster.vms.keys() - seen.keys()
    removed = absent & roster.missed if listing.is_complete else frozenset[str]()
    missed = absent - removed if listing.is_complete else roster.missed - seen.keys()
    kept = {key: vm for key, vm in roster.vms.items() if key not in removed}
    return Difference(
        added=tuple(vm for key, vm in seen.items() if key not in roster.vms),
        changed=tuple(vm for key, vm in seen.items() if roster.vms.get(key, vm) != vm),
        removed=_in_order(roster, removed),
        roster=Roster(vms=kept | seen, missed=frozenset(missed)),
    )


def _in_order(roster: Roster, keys: Iterable[str]) -> tuple[ListedVm, ...]:
    wanted = frozenset(keys)
    return tuple(vm for key, vm in roster.vms.items() if key in wanted)
