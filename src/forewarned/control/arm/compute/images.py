"""Images: those of the marketplace, where any name is found, and those that clients declare."""

import re
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.compute.image_aliases import ALIASES, Alias
from forewarned.control.arm.errors import not_found
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources.declared import Kind
from forewarned.control.arm.resources.declared_operations import operations_on
from forewarned.control.arm.routes import AT_LOCATION, Operation, read_fixed
from forewarned.service.azure.models.defaults import LATEST_VERSION
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import COMPUTE, same

KINDS: Final = (Kind(type=f"{COMPUTE}/images"),)

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


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
    read_fixed(f"{AT_LOCATION}/publishers", list_publishers),
    read_fixed(_OFFERS, list_offers),
    read_fixed(_SKUS, list_skus),
    read_fixed(_VERSIONS, list_versions),
    read_fixed(f"{_VERSIONS}/{{version}}", show_version),
    *(operation for kind in KINDS for operation in operations_on(kind)),
)
