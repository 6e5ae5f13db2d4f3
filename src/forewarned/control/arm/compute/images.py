"""Images: those of the marketplace, where any name is found, and those that clients declare.

Short names are as `az` looks them up: `--image Ubuntu2204`. The list is Azure's present one, with
UbuntuLTS besides: published guides still say it.
"""

import re
from dataclasses import dataclass
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.errors import not_found
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources.declared import Kind
from forewarned.control.arm.resources.declared_operations import operations_on
from forewarned.control.arm.routes import AT_LOCATION, Operation, open_read, read_fixed
from forewarned.service.azure.models.defaults import LATEST_VERSION
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import COMPUTE, same

KINDS: Final = (Kind(type=f"{COMPUTE}/images"),)

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


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


def list_publishers(asked: Asked) -> ArmAnswer:
    return _listed(asked, [each.publisher for each in ALIASES])


def list_offers(asked: Asked) -> ArmAnswer:
    return _listed(asked, [each.offer for each in _known(asked)])


def list_skus(asked: Asked) -> ArmAnswer:
    return _listed(asked, [each.sku for each in _known(asked)])


def list_versions(asked: Asked) -> ArmAnswer:
    return _listed(asked, [LATEST_VERSION])


def show_version(asked: Asked) -> ArmAnswer:
    version = asked.path["version"]
    if not _VERSION.fullmatch(version):
        raise not_found(
            "NotFound",
            f"Artifact: VMImage was not found: version '{version[:80]}' is not of the form 1.0.0.",
        )
    is_windows = any("windows" in asked.path[name].casefold() for name in ("publisher", "offer"))
    return ok(
        {
            "id": f"{asked.url.rstrip('/').rpartition('/')[0]}/{version}",
            "name": version,
            "location": asked.path["location"],
            "properties": {
                "osDiskImage": {"operatingSystem": "Windows" if is_windows else "Linux"},
                "dataDiskImages": [],
                "hyperVGeneration": "V1",
                "features": [],
                "architecture": "x64",
                "imageState": "Active",
            },
        }
    )


def _listed(asked: Asked, names: list[str]) -> ArmAnswer:
    """A plain list: the only one that Azure does not page."""
    folder = asked.url.rstrip("/")
    listed: list[Json] = [
        {"id": f"{folder}/{name}", "name": name, "location": asked.path["location"]}
        for name in sorted(set(names), key=str.casefold)
    ]
    return ok(listed)


def _known(asked: Asked) -> list[Alias]:
    """Images with a short name, of the requested publisher and offer."""
    offer = asked.path.get("offer")
    return [
        each
        for each in ALIASES
        if same(each.publisher, asked.path["publisher"])
        and (offer is None or same(each.offer, offer))
    ]


_PUBLISHER: Final = f"{AT_LOCATION}/publishers/{{publisher}}"
_OFFERS: Final = f"{_PUBLISHER}/artifacttypes/vmimage/offers"
_SKUS: Final = f"{_OFFERS}/{{offer}}/skus"
_VERSIONS: Final = f"{_SKUS}/{{sku}}/versions"

OPERATIONS: Final[tuple[Operation, ...]] = (
    open_read("/aliases.json", show_aliases),
    read_fixed(f"{AT_LOCATION}/publishers", list_publishers),
    read_fixed(_OFFERS, list_offers),
    read_fixed(_SKUS, list_skus),
    read_fixed(_VERSIONS, list_versions),
    read_fixed(f"{_VERSIONS}/{{version}}", show_version),
    *(operation for kind in KINDS for operation in operations_on(kind)),
)
