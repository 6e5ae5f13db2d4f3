"""Mutants of what keeps the fleet in step with platforms. Each would lose VMs, or revive some."""

from typing import Final

from tools.mutants.mutant import Mutant

_SOURCES: Final = ("tests/service/sources",)

SOURCES: Final = (
    Mutant(
        name="silent-host-removes",
        file="service/sources/roster.py",
        old="    if not listing.is_complete:\n        removed = []\n",
        new="",
        breaks="I19: a listing that lacks a host removes VMs, and their events with them",
        tests=_SOURCES,
    ),
    Mutant(
        name="one-listing-removes",
        file="service/sources/roster.py",
        old="_is_due(roster.missed.get(key), began_at=began_at)]",
        new="True]",
        breaks="I19: a VM that one listing lacks leaves the fleet, and its events with it",
        tests=_SOURCES,
    ),
    Mutant(
        name="busy-vm-removed",
        file="service/sources/roster.py",
        old="    absent = fleet.own - seen - fleet.busy\n",
        new="    absent = fleet.own - seen\n",
        breaks="I19: a VM that is being moved leaves the fleet, and its event with it",
        tests=_SOURCES,
    ),
    Mutant(
        name="older-listing-taken",
        file="service/sources/intake.py",
        old="        return None\n    fleet = _fleet(",
        new="        pass\n    fleet = _fleet(",
        breaks="I19: a slow node undoes what a later listing of another has brought",
        tests=_SOURCES,
    ),
    Mutant(
        name="listing-older-than-move",
        file="service/sources/intake.py",
        old="        names.update(vm for row in rows if row.at > since for vm in row.resources)\n",
        new="",
        breaks="I19: a listing that began before a migration ended moves the VM back in the fleet",
        tests=_SOURCES,
    ),
    Mutant(
        name="started-vm-written",
        file="service/sources/writes.py",
        old="return None if is_started or vm.host != compared.host else binding",
        new="return None if vm.host != compared.host else binding",
        breaks="I19: a source writes what an actuator has begun to change",
        tests=_SOURCES,
    ),
    Mutant(
        name="others-vms-changed",
        file="service/sources/intake.py",
        old="        if _is_of(binding, name):\n",
        new="        if binding.profile.is_platform_id:\n",
        breaks="I19: a source changes and removes what a fleet file declares",
        tests=_SOURCES,
    ),
    Mutant(
        name="prune-takes-listed",
        file="service/fleet/comparison.py",
        old="if folded not in self._stay and not self._is_listed(folded):",
        new="if folded not in self._stay:",
        breaks="I19: a fleet file that is applied with --prune removes what a source has brought",
        tests=_SOURCES,
    ),
    Mutant(
        name="new-field-new-digest",
        file="service/fleet/digest.py",
        old="        if found is not default and found != default:\n            yield",
        new="        if True:\n            yield",
        breaks="I22: an upgrade applies the fleet file again, which brings terminated VMs back",
        tests=("tests/service/fleet/test_digest.py",),
    ),
    Mutant(
        name="actuator-reads",
        file="security/identities.py",
        old="            return self in {needed, Role.ADMIN}\n",
        new="            return True\n",
        breaks="S12: a token of an actuator opens everything",
        tests=("tests/control/http/test_access.py",),
    ),
)
