"""Images: those of the marketplace, where any name is found, and those that clients declare."""

import re
from http import HTTPStatus
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.compute.image_aliases import ALIASES, Alias
from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources.declared import Kind
from forewarned.control.arm.resources.declared_operations import operations_on
from forewarned.control.arm.routes import Answer, Operation, read
from forewarned.control.arm.services import ArmServices
from forewarned.service.azure.models.defaults import LATEST_VERSION
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import COMPUTE, same

KINDS: Final = (Kind(type=f"{COMPUTE}/images"),)

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


async def list_publishers(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _listed(services, asked, [each.publisher for each in ALIASES])


async def list_offers(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _listed(services, asked, [each.offer for each in _known(asked)])


async def list_skus(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _listed(services, asked, [each.sku for each in _known(asked)])


async def list_versions(services: ArmServices, asked: Asked) -> ArmAnswer:
    return await _listed(services, asked, [LATEST_VERSION])


async def show_version(_: ArmServices, asked: Asked) -> ArmAnswer:
    version = asked.path["version"]
    if not _VERSION.fullmatch(version):
        raise ArmError(
            HTTPStatus.NOT_FOUND,
            "NotFound",
            f"Artifact: VMImage was not found: version '{version[:80]}' is not of the form 1.0.0.",
        )
    is_windows = any("windows" in asked.path[name].casefold() for name in ("publisher", "offer"))
    return ok(
        {
            "id": _folder(asked, version=version),
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


async def _listed(_: ArmServices, asked: Asked, names: list[str]) -> ArmAnswer:
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


def _folder(asked: Asked, *, version: str) -> str:
    return asked.url.rstrip("/").rpartition("/")[0] + f"/{version}"


def _marketplace() -> tuple[Operation, ...]:
    place = f"/subscriptions/{{subscription}}/providers/{COMPUTE}/locations/{{location}}"
    publisher = f"{place}/publishers/{{publisher}}"
    offer = f"{publisher}/artifacttypes/vmimage/offers/{{offer}}"
    sku = f"{offer}/skus/{{sku}}"
    served: tuple[tuple[str, Answer], ...] = (
        (f"{place}/publishers", list_publishers),
        (f"{publisher}/artifacttypes/vmimage/offers", list_offers),
        (f"{offer}/skus", list_skus),
        (f"{sku}/versions", list_versions),
        (f"{sku}/versions/{{version}}", show_version),
    )
    return tuple(read(path, answer) for path, answer in served)


OPERATIONS: Final[tuple[Operation, ...]] = (
    *_marketplace(),
    *(operation for kind in KINDS for operation in operations_on(kind)),
)
