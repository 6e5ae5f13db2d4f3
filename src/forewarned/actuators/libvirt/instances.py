"""A VM on one host, as libvirt there shows it. These functions block: call them in threads."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import libvirt

from forewarned.actuators.driver import Power, Vm
from forewarned.actuators.libvirt.connections.failures import is_code
from forewarned.actuators.libvirt.marks import (
    NAMESPACE,
    NO_MARK,
    PREFIX,
    Mark,
    mark_from_xml,
    mark_to_xml,
)

_POWER: Final = {
    libvirt.VIR_DOMAIN_RUNNING: Power.RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED: Power.RUNNING,
    libvirt.VIR_DOMAIN_SHUTDOWN: Power.RUNNING,  # it is being shut down, and not off yet
    libvirt.VIR_DOMAIN_PAUSED: Power.PAUSED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: Power.PAUSED,
    libvirt.VIR_DOMAIN_SHUTOFF: Power.OFF,
    libvirt.VIR_DOMAIN_CRASHED: Power.OFF,
}
_ARRIVING: Final = frozenset(
    {libvirt.VIR_DOMAIN_PAUSED_MIGRATION, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP}
)
_JOBS: Final = frozenset({libvirt.VIR_DOMAIN_JOB_BOUNDED, libvirt.VIR_DOMAIN_JOB_UNBOUNDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One host's view of a VM. During a migration two hosts have one."""

    host: str
    power: Power
    is_arriving: bool
    """Whether it stands still because a migration has yet to bring it here."""
    is_persistent: bool
    """Whether libvirt keeps it while it is off."""
    domain_id: int
    """Of this run of it; -1 if it is off. A reset does not change it."""
    job: str
    mark: Mark
    stood_still: float | None = None
    """Seconds for which it did when it came here since its mark was made; None if it did not."""

    @property
    def run(self) -> str:
        """Another value shows that the VM was stopped and started since.

        A migration gives the VM another id. So a VM that is no longer where its mark was made
        is said to be in the run of that mark.
        """
        if self.power not in {Power.RUNNING, Power.PAUSED}:
            return ""
        mark = self.mark
        if mark.run and (self.host, self.domain_id) == (mark.host, mark.domain_id):
            return mark.run
        if mark.run and self.host != mark.host:
            return mark.run
        return f"{self.host}/{self.domain_id}"


def domain_of(connection: libvirt.virConnect, vm: Vm) -> libvirt.virDomain | None:
    """By its UUID where the fleet has it: another VM may be given its name."""
    try:
        if vm.vm_id:
            return connection.lookupByUUIDString(vm.vm_id)
        return connection.lookupByName(vm.name)
    except libvirt.libvirtError as error:
        if is_code(error, libvirt.VIR_ERR_NO_DOMAIN):
            return None
        raise


def look(connection: libvirt.virConnect, vm: Vm, *, host: str) -> Instance | None:
    """None if this host does not have the VM, or no longer has it."""
    domain = domain_of(connection, vm)
    if domain is None:
        return None
    try:
        state, reason = domain.state()
        mark = _mark(domain)
        return Instance(
            host=host,
            power=_POWER.get(state, Power.UNKNOWN),
            is_arriving=state == libvirt.VIR_DOMAIN_PAUSED and reason in _ARRIVING,
            is_persistent=bool(domain.isPersistent()),
            domain_id=domain.ID(),
            job=_job(domain),
            mark=mark,
            stood_still=_downtime(domain) if mark.host not in {"", host} else None,
        )
    except libvirt.libvirtError as error:
        if is_code(error, libvirt.VIR_ERR_NO_DOMAIN):
            return None
        raise


def power_of(domain: libvirt.virDomain) -> Power:
    return _POWER.get(domain.state()[0], Power.UNKNOWN)


def best(instances: Iterable[Instance]) -> Instance | None:
    """The one that is the VM: where it runs, or else where it stands still, or is kept."""
    order = [Power.OFF, Power.UNKNOWN, Power.PAUSED, Power.RUNNING]
    return max(
        instances, key=lambda each: (order.index(each.power), not each.is_arriving), default=None
    )


def write_mark(domain: libvirt.virDomain, mark: Mark) -> None:
    """Where it runs, so that a migration hands it on, and where it is kept while it is off."""
    live = libvirt.VIR_DOMAIN_AFFECT_LIVE if domain.isActive() else 0
    kept = libvirt.VIR_DOMAIN_AFFECT_CONFIG if domain.isPersistent() else 0
    domain.setMetadata(
        libvirt.VIR_DOMAIN_METADATA_ELEMENT, mark_to_xml(mark), PREFIX, NAMESPACE, live | kept
    )


def _mark(domain: libvirt.virDomain) -> Mark:
    try:
        return mark_from_xml(domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, NAMESPACE))
    except libvirt.libvirtError as error:
        if is_code(error, libvirt.VIR_ERR_NO_DOMAIN_METADATA):
            return NO_MARK
        raise


def _job(domain: libvirt.virDomain) -> str:
    """What it is at, for people; empty for nothing."""
    try:
        type_, _, _, total, _, remaining, *_ = domain.jobInfo()
    except libvirt.libvirtError as error:
        # It is off, or this libvirt has no jobs.
        if is_code(error, libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_SUPPORT):
            return ""
        raise
    if type_ not in _JOBS:
        return ""
    if not total:
        return "a libvirt job is in progress"
    return f"{100 * (total - remaining) // total}% of the VM has been copied"


def _downtime(domain: libvirt.virDomain) -> float | None:
    """Seconds for which it stood still at the end of the migration that has brought it here."""
    kept = libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED | libvirt.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED
    try:
        measured = domain.jobStats(kept).get("downtime")
    except libvirt.libvirtError:
        # It was not migrated while it ran, or libvirt has been restarted since: no one knows.
        return None
    return measured / 1000 if isinstance(measured, int) else None
