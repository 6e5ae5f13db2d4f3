"""libvirt's own stand-in for a hypervisor, which has no migration and tells of no reboot."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from forewarned.actuators.driver import Driver, Vm
from tests.packages import need_libvirt_library

if TYPE_CHECKING:
    import libvirt

VM: Final = Vm(name="test", vm_id="6695eb01-f6a4-8304-79aa-97f2502e193f", host="hv-a")
"""The one that `test:///default` has."""

OpenDriver = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture
def open_driver() -> OpenDriver:
    """Opens a driver of hosts, at their libvirts. Drivers of one test see the same VMs."""
    need_libvirt_library()
    from forewarned.actuators.libvirt.driver import LibvirtDriver

    @contextlib.asynccontextmanager
    async def opened(*hosts: str, uri: str = "test:///default") -> AsyncIterator[Driver]:
        async with LibvirtDriver(hosts or ("hv-a",), uri=uri) as driver:
            yield driver

    return opened


@pytest.fixture
def hypervisor() -> "Iterator[libvirt.virConnect]":
    """Beside the driver. While it is open, libvirt keeps what the test has changed."""
    need_libvirt_library()
    import libvirt

    connection = libvirt.open("test:///default")
    yield connection
    connection.close()


@pytest.fixture
async def driver(
    open_driver: OpenDriver, hypervisor: "libvirt.virConnect"
) -> AsyncIterator[Driver]:
    async with open_driver() as opened:
        yield opened


@pytest.fixture
def racks(tmp_path: Path) -> str:
    """The URI of two hosts: `hv-a` has the VM, `hv-b` has none, and each keeps its own."""
    memory = "<memory unit='MiB'>2</memory>"
    domain = (
        f"<domain type='test'><name>test</name><uuid>{VM.vm_id}</uuid>{memory}"
        "<os><type>hvm</type></os></domain>"
    )
    (tmp_path / "hv-a.xml").write_text(f"<node>{domain}</node>")
    (tmp_path / "hv-b.xml").write_text("<node></node>")
    return f"test://{tmp_path}/{{host}}.xml"
