"""The sizes of VMs that are listed. Any other is accepted: nothing here depends on a size."""

import re
from dataclasses import dataclass
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.compute.scale_sets import SET, find
from forewarned.control.arm.errors import bad_request
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import (
    AT_LOCATION,
    GROUP,
    SUBSCRIPTION,
    Operation,
    read,
    read_fixed,
)
from forewarned.service.azure import vms
from forewarned.service.azure.models.set_changes import LARGEST_SET
from forewarned.service.azure.resource_ids import COMPUTE, MACHINES, SCALE_SETS
from forewarned.service.ports import Snapshot

_ZONES: Final = ("1", "2", "3")
_OF_LOCATION: Final = re.compile(r"\s*location\s+eq\s+'([^']*)'\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    name: str
    family: str
    cores: int
    memory_gib: float
    disks: int
    temporary_gib: int = 0


SIZES: Final = (
    Size(name="Standard_B1s", family="standardBSFamily", cores=1, memory_gib=1, disks=2),
    Size(name="Standard_B2s", family="standardBSFamily", cores=2, memory_gib=4, disks=4),
    Size(
        name="Standard_DS1_v2",
        family="standardDSv2Family",
        cores=1,
        memory_gib=3.5,
        disks=4,
        temporary_gib=7,
    ),
    Size(name="Standard_D2s_v3", family="standardDSv3Family", cores=2, memory_gib=8, disks=4),
    Size(name="Standard_D4s_v3", family="standardDSv3Family", cores=4, memory_gib=16, disks=8),
    Size(name="Standard_D2s_v5", family="standardDSv5Family", cores=2, memory_gib=8, disks=4),
    Size(name="Standard_D4s_v5", family="standardDSv5Family", cores=4, memory_gib=16, disks=8),
    Size(name="Standard_D8s_v5", family="standardDSv5Family", cores=8, memory_gib=32, disks=16),
    Size(name="Standard_E4s_v5", family="standardESv5Family", cores=4, memory_gib=32, disks=8),
    Size(name="Standard_F4s_v2", family="standardFSv2Family", cores=4, memory_gib=8, disks=8),
)


def list_skus(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """Of one location, or of all: `az` reads from it which zones a location has."""
    wanted = _location(asked)
    where = [wanted] if wanted else groups.locations(snapshot, asked)
    return ok(page(SIZES, asked, lambda size: size.name, show=lambda size: _sku(size, where)))


def list_sizes(_: Asked) -> ArmAnswer:
    return ok({"value": [_size(each) for each in SIZES]})


def list_sizes_of_vm(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """The sizes that the VM can be resized to: all of them."""
    vms.find(snapshot, asked.id_of(MACHINES, asked.path["name"]))
    return list_sizes(asked)


def list_skus_of_set(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    find(snapshot, asked)
    return ok(page(SIZES, asked, lambda size: size.name, show=_sku_of_set))


def _location(asked: Asked) -> str | None:
    text = asked.option("$filter")
    if text is None:
        return None
    found = _OF_LOCATION.fullmatch(text)
    if found is None:
        raise bad_request(
            "InvalidFilter", "Invalid $filter: expected \"location eq '…'\".", target="$filter"
        )
    return found[1]


def _sku(size: Size, locations: list[str]) -> dict[str, object]:
    features = {
        "vCPUs": str(size.cores),
        "MemoryGB": f"{size.memory_gib:g}",
        "MaxDataDiskCount": str(size.disks),
        "MaxResourceVolumeMB": str(size.temporary_gib * 1024),
        "HyperVGenerations": "V1,V2",
        "CpuArchitectureType": "x64",
        "LowPriorityCapable": "True",
        "PremiumIO": "True",
    }
    return {
        "resourceType": "virtualMachines",
        "name": size.name,
        "tier": "Standard",
        "size": size.name.removeprefix("Standard_"),
        "family": size.family,
        "locations": locations,
        "locationInfo": [
            {"location": each, "zones": _ZONES, "zoneDetails": []} for each in locations
        ],
        "capabilities": [{"name": name, "value": value} for name, value in features.items()],
        "restrictions": [],
    }


def _sku_of_set(size: Size) -> dict[str, object]:
    return {
        "resourceType": SCALE_SETS,
        "sku": {"name": size.name, "tier": "Standard"},
        "capacity": {
            "minimum": 0,
            "maximum": LARGEST_SET,
            "defaultCapacity": 1,
            "scaleType": "Automatic",
        },
    }


def _size(size: Size) -> dict[str, object]:
    return {
        "name": size.name,
        "numberOfCores": size.cores,
        "memoryInMB": int(size.memory_gib * 1024),
        "maxDataDiskCount": size.disks,
        "osDiskSizeInMB": 1_047_552,
        "resourceDiskSizeInMB": size.temporary_gib * 1024,
    }


OPERATIONS: Final[tuple[Operation, ...]] = (
    read(f"{SUBSCRIPTION}/providers/{COMPUTE}/skus", list_skus),
    read_fixed(f"{AT_LOCATION}/vmSizes", list_sizes),
    read(f"{GROUP}/providers/{MACHINES}/{{name}}/vmSizes", list_sizes_of_vm),
    read(f"{SET}/skus", list_skus_of_set),
)
