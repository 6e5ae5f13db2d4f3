"""The fleet the machine plays with, as one table of plain facts.

Small, so that hypothesis meets its VMs again and again, and crossed: hosts hold VMs of several
scopes, and scopes have VMs on several hosts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.core.ids import ScopeId
from forewarned.core.model import EvictionPolicy, Policy, Priority
from forewarned.service.fleet.declaration import (
    AvailabilitySet,
    FleetPlan,
    Member,
    Model,
    ScaleSet,
    VirtualMachine,
)
from tests.builders import MINUTE

SOLO: Final = ScopeId("vm/solo")
AUTO: Final = ScopeId("vm/auto")
"""Its policy needs nobody's approval for a Reboot that a user asked for."""
WEB: Final = ScopeId("avset/web")
BATCH: Final = ScopeId("vmss/batch/0")
SPOT: Final = ScopeId("vmss/spot/0")
BRIEF: Final = ScopeId("vmss/brief/0")
"""Spot VMs that are deleted when they are evicted."""

SCOPES: Final = (SOLO, AUTO, WEB, BATCH, SPOT, BRIEF)
SPOT_SCOPES: Final = frozenset({SPOT, BRIEF})

TERMINATE_NOTICE: Final[Mapping[ScopeId, timedelta]] = {BATCH: 7 * MINUTE}
USUAL_TERMINATE_NOTICE: Final = 5 * MINUTE
LONGEST_TERMINATE_NOTICE: Final = 15 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    name: str
    scope: ScopeId
    host: str
    domain: int = 0


VMS: Final = {
    vm.name: vm
    for vm in (
        Vm(name="solo", scope=SOLO, host="rack-1"),
        Vm(name="auto", scope=AUTO, host="rack-2"),
        Vm(name="web-0", scope=WEB, host="rack-1", domain=0),
        Vm(name="web-1", scope=WEB, host="rack-2", domain=1),
        Vm(name="web-2", scope=WEB, host="rack-3", domain=2),
        Vm(name="web-3", scope=WEB, host="rack-1", domain=0),
        Vm(name="batch_0", scope=BATCH, host="rack-1"),
        Vm(name="batch_1", scope=BATCH, host="rack-4"),
        Vm(name="batch_2", scope=BATCH, host="rack-4"),
        Vm(name="batch_3", scope=BATCH, host="rack-4"),
        Vm(name="spot_0", scope=SPOT, host="rack-2"),
        Vm(name="spot_1", scope=SPOT, host="rack-4"),
        Vm(name="brief_0", scope=BRIEF, host="rack-3"),
    )
}
FULL: Final = {scope: sum(vm.scope == scope for vm in VMS.values()) for scope in SCOPES}
"""How many VMs each scope has."""


def plan(sizes: Mapping[ScopeId, int] = FULL) -> FleetPlan:
    """The fleet with only so many VMs in each scope."""
    return FleetPlan(
        vms=tuple(
            VirtualMachine(
                name=vm.name, host=vm.host, policy=Policy(approves_user_reboot=scope == AUTO)
            )
            for scope in (SOLO, AUTO)
            for vm in _first(scope, sizes)
        ),
        availability_sets=(
            AvailabilitySet(
                name="web",
                update_domains=3,
                members=tuple(Member(name=vm.name, host=vm.host) for vm in _first(WEB, sizes)),
            ),
        ),
        scale_sets=(
            _scale_set(BATCH, sizes, Model(terminate_notice=TERMINATE_NOTICE[BATCH])),
            _scale_set(SPOT, sizes, Model(priority=Priority.SPOT)),
            _scale_set(
                BRIEF,
                sizes,
                Model(priority=Priority.SPOT, eviction_policy=EvictionPolicy.DELETE),
            ),
        ),
    )


def _scale_set(scope: ScopeId, sizes: Mapping[ScopeId, int], model: Model) -> ScaleSet:
    vms = _first(scope, sizes)
    return ScaleSet(
        name=scope.split("/")[1],
        capacity=len(vms),
        update_domains=1,
        hosts=tuple(vm.host for vm in vms),
        model=model,
    )


def _first(scope: ScopeId, sizes: Mapping[ScopeId, int]) -> list[Vm]:
    return [vm for vm in VMS.values() if vm.scope == scope][: sizes[scope]]
