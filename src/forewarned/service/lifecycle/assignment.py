"""Which actuator carries out the events of a VM."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from forewarned.core.model import Resource
from forewarned.core.tasks import SIMULATED, ActuatorOf


def simulated(_: Resource) -> str:
    """In an emulator all of it is simulated."""
    return SIMULATED


def by_host(hosts: Mapping[str, Collection[str]]) -> ActuatorOf:
    """`hosts` has the patterns of each actuator's hosts: `hv-*`.

    What the fleet says of a VM comes first. A host that several actuators claim has none: an
    operator has to say which.
    """

    def actuator_of(vm: Resource) -> str:
        if vm.actuator:
            return vm.actuator
        host = vm.host.casefold()
        found = [
            name
            for name, patterns in hosts.items()
            if any(fnmatchcase(host, pattern.casefold()) for pattern in patterns)
        ]
        return found[0] if len(found) == 1 else ""

    return actuator_of
