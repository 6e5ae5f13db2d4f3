"""The hosts of an OpenStack cloud: where VMs may be moved to, and how Nova is kept from a host.

A draining host is disabled in Nova, so that its scheduler puts no VM there, neither ours nor one
that a tenant creates.
"""

from collections.abc import Iterable
from typing import Final

from forewarned.actuators.driver import DriverError
from forewarned.actuators.openstack.compute import Compute
from forewarned.actuators.openstack.wire import ComputeService, Server
from forewarned.core.ids import same_name

_OURS: Final = "forewarned: "
"""Begins the reason for which we have disabled a host."""


class UnknownHostError(DriverError):
    def __init__(self, host: str) -> None:
        super().__init__(f"Nova has no compute service on a host {host}")
        self.host = host


class NovaHosts:
    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    async def cordon(self, host: str, *, why: str) -> None:
        """Have Nova put no VM there. One that someone else has disabled stays as it is."""
        service = await self._service(host)
        if service.status == "enabled":
            change = {"status": "disabled", "disabled_reason": f"{_OURS}{why}"}
            await self._compute.change_service(service, change)

    async def uncordon(self, host: str) -> None:
        """Undo `cordon`. A host that someone else has disabled stays disabled."""
        service = await self._service(host)
        if service.status == "disabled" and (service.disabled_reason or "").startswith(_OURS):
            await self._compute.change_service(service, {"status": "enabled"})

    async def vms(self, host: str) -> list[Server]:
        """Those that Nova has there, in whatever state; so none are left when it is empty."""
        return await self._compute.servers(host=(await self._service(host)).host)

    async def services(self) -> tuple[ComputeService, ...]:
        return await self._compute.services()

    async def _service(self, host: str) -> ComputeService:
        service = _find(await self.services(), host)
        if service is None:
            raise UnknownHostError(host)
        return service


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
