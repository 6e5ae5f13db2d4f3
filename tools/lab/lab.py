"""The lab as a whole: hosts, guests on them, and the service that the guests read."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.lab.guests import GuestPlan, SerialPort
from tools.lab.hosts import LabHost, lab_hosts
from tools.lab.image import Image, image
from tools.lab.packages import need_programs

if TYPE_CHECKING:
    import libvirt

    from forewarned.actuators.libvirt.driver import LibvirtDriver


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    plan: GuestPlan
    serial: SerialPort


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    folder: Path
    service: str
    """The network namespace at which guests find the service."""
    hosts: dict[str, LabHost]
    image: Image

    @property
    def uri(self) -> str:
        """Of a host's libvirt, seen from this machine."""
        return f"qemu+unix:///system?socket={self.folder}/{{host}}/sock/libvirt-sock"

    @property
    def peer_uri(self) -> str:
        """Of a host's libvirt, seen from another host."""
        return "qemu+tcp://{target}/system"

    def driver(self, *, memory: str = "tcp://{target}-mig") -> "LibvirtDriver":
        """`memory` is where hosts are told to send the memory of VMs."""
        from forewarned.actuators.libvirt.driver import LibvirtDriver  # noqa: PLC0415  # it needs libvirt
        from forewarned.actuators.libvirt.migration import Routes  # noqa: PLC0415  # as above

        routes = Routes(peer=self.peer_uri, memory=memory)
        return LibvirtDriver(self.hosts, uri=self.uri, routes=routes)

    @contextlib.contextmanager
    def libvirt(self, host: str) -> "Iterator[libvirt.virConnect]":
        import libvirt  # noqa: PLC0415  # once the lab has seen that it is installed

        connection = libvirt.open(self.uri.replace("{host}", host))
        try:
            yield connection
        finally:
            connection.close()

    @contextlib.contextmanager
    def guest(self, plan: GuestPlan, *, host: str) -> Iterator[Guest]:
        """Started, and ended wherever it is then."""
        with SerialPort(file=self.folder / f"{plan.name}.serial") as serial:
            with self.libvirt(host) as connection:
                connection.defineXML(plan.domain(self.image, serial.file)).create()
            try:
                yield Guest(plan=plan, serial=serial)
            finally:
                self._remove(plan)

    def _remove(self, plan: GuestPlan) -> None:
        for host in self.hosts:
            with self.libvirt(host) as connection:
                for domain in connection.listAllDomains():
                    if domain.name() == plan.name:
                        if domain.isActive():
                            domain.destroy()
                        domain.undefine()

    def host_of(self, name: str) -> str:
        """The host on which the guest runs."""
        for host in self.hosts:
            with self.libvirt(host) as connection:
                if any(
                    each.name() == name and each.isActive() for each in connection.listAllDomains()
                ):
                    return host
        raise AssertionError(f"{name} runs on no host")


@contextlib.contextmanager
def lab() -> Iterator[Lab]:
    """Raises NoLabError where it can't be set up."""
    need_programs()
    made = image()
    # Paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="fwlab-") as name:
        folder = Path(name)
        with lab_hosts(folder) as (service, hosts):
            yield Lab(folder=folder, service=service, hosts=hosts, image=made)
