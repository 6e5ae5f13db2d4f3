"""Which refusals a request must meet, foretold from the oracle alone.

Where several apply, any of them may be the answer; where none does, the request must be granted.
"""

from datetime import timedelta
from itertools import groupby
from typing import Final

from forewarned.core.errors import (
    DuplicateResourceError,
    NoResourcesError,
    NoticeTooLongError,
    NoticeTooShortError,
    NotMaintainableError,
    NotSpotError,
    RefusalError,
    SeveralUpdateDomainsError,
    ShortNoticeForbiddenError,
    SpotTerminateError,
    UnknownHostError,
    UnknownResourceError,
)
from forewarned.core.ids import ScopeId
from forewarned.core.model import EventType, ResourceState
from forewarned.service.events.schedule import EventOrder, WorkOrder
from tests.builders import DAY
from tests.stateful.fleet import LONGEST_TERMINATE_NOTICE, SPOT_SCOPES, VMS, Vm
from tests.stateful.laws_of_commits import minimum_notice
from tests.stateful.oracle import Oracle

Refusals = set[type[RefusalError]]

LONGEST_NOTICE: Final = 90 * DAY
MAINTAINABLE: Final = {EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY}


def of_order(order: EventOrder, oracle: Oracle, *, short_allowed: bool) -> Refusals:
    refusals: Refusals = set()
    names = [str(name) for name in order.resources]
    vms = [VMS[name] for name in names]
    if not set(names) <= set(oracle.vms()):
        refusals.add(UnknownResourceError)
    if len(set(names)) < len(names):
        refusals.add(DuplicateResourceError)
    if order.type is EventType.PREEMPT and any(vm.scope not in SPOT_SCOPES for vm in vms):
        refusals.add(NotSpotError)
    if order.type is EventType.TERMINATE and any(vm.scope in SPOT_SCOPES for vm in vms):
        refusals.add(SpotTerminateError)
    if order.type is not EventType.TERMINATE and _span_update_domains(vms):
        refusals.add(SeveralUpdateDomainsError)
    for name in names:
        refusals |= _of_notice(
            order.type,
            order.notice,
            minimum_notice(order.type, [name]),
            is_short=order.short_notice,
            short_allowed=short_allowed,
        )
    return refusals


def of_host_work(order: WorkOrder, host: str, oracle: Oracle, *, short_allowed: bool) -> Refusals:
    unknown: Refusals = set() if vms_up(oracle, host=host) else {UnknownHostError}
    return unknown | _of_work(order, short_allowed=short_allowed)


def of_set_work(
    order: WorkOrder, scope_id: ScopeId, oracle: Oracle, *, short_allowed: bool
) -> Refusals:
    nobody: Refusals = set() if vms_up(oracle, scope_id=scope_id) else {NoResourcesError}
    return nobody | _of_work(order, short_allowed=short_allowed)


def vms_up(oracle: Oracle, *, scope_id: ScopeId | None = None, host: str | None = None) -> list[Vm]:
    return [
        VMS[name]
        for saved in oracle.scopes.values()
        for name, vm in saved.scope.resources.items()
        if vm.state is not ResourceState.DEALLOCATED
        and scope_id in {None, saved.scope.id}
        and host in {None, vm.host}
    ]


def is_under_work(oracle: Oracle, scope_id: ScopeId) -> bool:
    """Whether maintenance is open or planned there, so that more of it may have to wait."""
    is_planned = oracle.scopes[scope_id].scope.rounds is not None
    lives = oracle.of_scope(scope_id)
    return is_planned or any(life.event.maintenance and not life.is_over for life in lives)


def _of_work(order: WorkOrder, *, short_allowed: bool) -> Refusals:
    if order.type not in MAINTAINABLE:
        return {NotMaintainableError}
    return _of_notice(
        order.type,
        order.notice,
        minimum_notice(order.type, []),
        is_short=order.short_notice,
        short_allowed=short_allowed,
    )


def _of_notice(
    type_: EventType,
    asked: timedelta | None,
    minimum: timedelta,
    *,
    is_short: bool,
    short_allowed: bool,
) -> Refusals:
    refusals: Refusals = set()
    if is_short and not short_allowed:
        refusals.add(ShortNoticeForbiddenError)
    if asked is None:
        return refusals
    longest = LONGEST_TERMINATE_NOTICE if type_ is EventType.TERMINATE else LONGEST_NOTICE
    if asked > longest:
        refusals.add(NoticeTooLongError)
    if asked < minimum and not is_short:
        refusals.add(NoticeTooShortError)
    return refusals


def _span_update_domains(vms: list[Vm]) -> bool:
    by_scope = groupby(sorted(vms, key=lambda vm: vm.scope), key=lambda vm: vm.scope)
    return any(len({vm.domain for vm in here}) > 1 for _, here in by_scope)
