"""The hosts of an OpenStack cloud: where VMs may be moved to, and how Nova is kept from a host.

A draining host is disabled in Nova, so that its scheduler puts no VM there, neither ours nor one
that a tenant creates.
"""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from forewarned.actuators.driver import DriverError
from forewarned.actuators.openstack.compute import Compute
from forewarned.actuators.openstack.wire import ComputeService, Server
from forewarned.core.ids import same_name

_OURS: Final = "forewarned: "
"""Begins the reason for which we have disabled a host."""
_LONGEST: Final = 255
"""Characters of such a reason."""


class UnknownHostError(DriverError):
    def __init__(self, host: str) -> None:
        super().__init__(f"Nova has no compute service on host {host}")
        self.host = host


class NovaHosts:
    def __init__(self, compute: Compute, patterns: Collection[str] = ()) -> None:
        """Of the hosts that a pattern fits, like `hv-*`; of all if there is none."""
        self._compute = compute
        self._patterns = [pattern.casefold() for pattern in patterns]

    async def cordon(self, hosts: Collection[str]) -> Mapping[str, str]:
        """Try all of them. Returns those where Nova refuses it, each with the cause."""
        ours = [each for each in await self._compute.services() if self._is_ours(each.host)]
        failures = {}
        for service, change in cordon_changes(ours, hosts):
            try:
                await self._compute.change_service(service, change)
            except DriverError as error:
                failures[service.host] = str(error)
        return failures

    async def vms_on(self, host: str) -> list[Server]:
        """Those that Nova has there, in whatever state; so none are left when it is empty."""
        service = _find(await self._compute.services(), host)
        if service is None:
            raise UnknownHostError(host)
        return await self._compute.servers(host=service.host)

    def _is_ours(self, host: str) -> bool:
        return not self._patterns or any(
            fnmatchcase(host.casefold(), pattern) for pattern in self._patterns
        )


def cordon_changes(
    services: Iterable[ComputeService], hosts: Collection[str]
) -> list[tuple[ComputeService, dict[str, str]]]:
    """What to change so that these hosts are disabled, and no other for our sake.

    A host that someone else has disabled is left alone, before and after it is drained.
    """
    changes = []
    for service in services:
        is_cordoned = any(same_name(service.host, host) for host in hosts)
        is_ours = (service.disabled_reason or "").startswith(_OURS)
        if is_cordoned and service.status == "enabled":
            reason = f"{_OURS}drained; 'forewarned host undrain {service.host}' ends it"
            changes.append((service, {"status": "disabled", "disabled_reason": reason[:_LONGEST]}))
        elif not is_cordoned and service.status == "disabled" and is_ours:
            changes.append((service, {"status": "enabled"}))
    return changes


def find_targets(
    services: Iterable[ComputeService], *, source: str, wanted: str | None = None
) -> list[str] | str:
    """The hosts that a VM could be moved to as far as their services go; or why there is none.

    `wanted` is the only one that will do; None for any.
    """
    others = [each for each in services if not same_name(each.host, source)]
    if wanted is not None:
        others = [each for each in others if same_name(each.host, wanted)]
    fitting = [each.host for each in others if _objection(each) is None]
    if fitting:
        return fitting
    reasons = [f"{each.host} {_objection(each)}" for each in others]
    return f"no host can take the VM: {'; '.join(reasons) or 'Nova has no other'}"


def source_objection(services: Iterable[ComputeService], *, source: str) -> str | None:
    """Why no VM can be moved away from that host; None if one can."""
    service = _find(services, source)
    if service is None or service.state == "up":
        return None
    return f"nova-compute on {source} is down"


def _objection(service: ComputeService) -> str | None:
    if service.status != "enabled":
        why = f" ({service.disabled_reason})" if service.disabled_reason else ""
        return f"is disabled{why}"
    return None if service.state == "up" else "is down"


def _find(services: Iterable[ComputeService], host: str) -> ComputeService | None:
    return next((each for each in services if same_name(each.host, host)), None)
