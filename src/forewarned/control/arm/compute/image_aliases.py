"""Short names of images, as `az` looks them up: `--image Ubuntu2204`.

The list is Azure's present one, with UbuntuLTS besides: published guides still say it.
"""

from dataclasses import dataclass
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import Operation, open_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    name: str
    publisher: str
    offer: str
    sku: str
    is_windows: bool = False


def _linux(name: str, publisher: str, offer: str, sku: str) -> Alias:
    return Alias(name=name, publisher=publisher, offer=offer, sku=sku)


def _windows(name: str, sku: str) -> Alias:
    return Alias(
        name=name,
        publisher="MicrosoftWindowsServer",
        offer="WindowsServer",
        sku=sku,
        is_windows=True,
    )


ALIASES: Final = (
    _linux("CentOS85Gen2", "OpenLogic", "CentOS", "8_5-gen2"),
    _linux("Debian11", "Debian", "debian-11", "11-backports-gen2"),
    _linux("Debian12", "Debian", "debian-12", "12-gen2"),
    _linux("FlatcarLinuxFreeGen2", "kinvolk", "flatcar-container-linux-free", "stable-gen2"),
    _linux("OpenSuseLeap154Gen2", "SUSE", "openSUSE-leap-15-4", "gen2"),
    _linux("RHELRaw8LVMGen2", "RedHat", "RHEL", "8-lvm-gen2"),
    _linux("SuseSles15SP5", "SUSE", "sles-15-sp5", "gen2"),
    _linux("Ubuntu2204", "Canonical", "0001-com-ubuntu-server-jammy", "22_04-lts-gen2"),
    _linux("Ubuntu2404", "Canonical", "ubuntu-24_04-lts", "server"),
    _linux("Ubuntu2404Pro", "Canonical", "ubuntu-24_04-lts", "ubuntu-pro"),
    _linux("UbuntuLTS", "Canonical", "UbuntuServer", "18.04-LTS"),
    _windows("Win2012Datacenter", "2012-Datacenter"),
    _windows("Win2012R2Datacenter", "2012-R2-Datacenter"),
    _windows("Win2016Datacenter", "2016-Datacenter"),
    _windows("Win2019Datacenter", "2019-Datacenter"),
    _windows("Win2022AzureEditionCore", "2022-datacenter-azure-edition-core"),
    _windows("Win2022Datacenter", "2022-datacenter-g2"),
)


def show_aliases(_: Asked) -> ArmAnswer:
    """In the shape of a template's outputs, because that is what clients read."""
    by_system: dict[str, dict[str, object]] = {"Linux": {}, "Windows": {}}
    for each in ALIASES:
        by_system["Windows" if each.is_windows else "Linux"][each.name] = {
            "publisher": each.publisher,
            "offer": each.offer,
            "sku": each.sku,
            "version": "latest",
            "architecture": "x64",
        }
    return ok({"outputs": {"aliases": {"type": "object", "value": by_system}}})


OPERATIONS: Final[tuple[Operation, ...]] = (open_read("/aliases.json", show_aliases),)
