"""On which host a VM is."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import libvirt

from forewarned.actuators.driver import DriverError, Power, RefusedError, Vm
from forewarned.actuators.libvirt.connections.hosts import Host, Hosts
from forewarned.actuators.libvirt.instances import Instance, best, domain_of, look

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedVm:
    vm: Vm
    host: Host
    instance: Instance
    job: str
    """What is being done to it, on this host or another; empty for nothing."""

    async def call(self, call: Callable[[libvirt.virDomain], T]) -> T:
        """Raises DriverError: RefusedError if the VM is no longer on this host."""

        def call_domain(connection: libvirt.virConnect) -> T:
            domain = domain_of(connection, self.vm)
            if domain is None:
                raise RefusedError(f"{self.host.name} has no VM {self.vm.name}")
            return call(domain)

        return await self.host.call(call_domain)


async def locate(hosts: Hosts, vm: Vm) -> LocatedVm | None:
    """None if no host has it. Raises DriverError if none says so and one does not answer.

    Invariant: a host that does not answer never makes a VM look gone.
    """
    home = hosts.host(vm.host)
    answers = [await _ask(home, vm)]
    if not _is_settled(answers[0]):
        answers += await asyncio.gather(*(_ask(host, vm) for host in hosts.others(home)))
    instances = [each for each in answers if isinstance(each, Instance)]
    errors = [each for each in answers if isinstance(each, DriverError)]
    found = best(instances)
    if found is None:
        if errors:
            raise errors[0]
        return None
    job = next((each.job for each in instances if each.job), "")
    return LocatedVm(vm=vm, host=hosts.host(found.host), instance=found, job=job)


async def _ask(host: Host, vm: Vm) -> Instance | DriverError | None:
    try:
        return await host.call(lambda connection: look(connection, vm, host=host.name))
    except DriverError as error:
        return error


def _is_settled(answer: Instance | DriverError | None) -> bool:
    """Whether no other host needs to be asked: a VM runs on one host only."""
    return isinstance(answer, Instance) and answer.power is Power.RUNNING
