"""How much of a location's quota is in use, for `az vm list-usage`.

Nothing is limited here but the sizes of sets, so each limit is as large as clients can read.
"""

from collections import Counter
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.compute.sizes import SIZES
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import AT_LOCATION, Operation, read
from forewarned.service.azure import inventory
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import same
from forewarned.service.ports import Snapshot

_NO_LIMIT: Final = 2**31 - 1
_SIZES: Final = {size.name.casefold(): size for size in SIZES}
_NAMES: Final = {
    "availabilitySets": "Availability Sets",
    "cores": "Total Regional vCPUs",
    "virtualMachines": "Virtual Machines",
    "virtualMachineScaleSets": "Virtual Machine Scale Sets",
} | {size.family: f"{size.family} vCPUs" for size in SIZES}


def list_usages(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    used = _used(snapshot, asked)
    return ok({"value": [_shown(name, used[name]) for name in _NAMES]})


def _used(snapshot: Snapshot, asked: Asked) -> Counter[str]:
    subscription = asked.path["subscription"]
    used: Counter[str] = Counter()
    for binding in snapshot.bindings():
        profile = binding.profile
        is_here = same(profile.subscription_id, subscription) and asked.is_of_list(profile.location)
        if not is_here or inventory.cloud_service(binding):
            continue
        used["virtualMachines"] += 1
        size = _SIZES.get(profile.size.casefold())
        if size is not None:
            used["cores"] += size.cores
            used[size.family] += size.cores
    for view in inventory.scale_sets(snapshot, subscription):
        used["virtualMachineScaleSets"] += asked.is_of_list(view.location)
    for each in inventory.availability_sets(snapshot, subscription):
        used["availabilitySets"] += asked.is_of_list(each.location)
    return used


def _shown(name: str, used: int) -> Json:
    return {
        "unit": "Count",
        "currentValue": used,
        "limit": _NO_LIMIT,
        "name": {"value": name, "localizedValue": _NAMES[name]},
    }


OPERATIONS: Final[tuple[Operation, ...]] = (read(f"{AT_LOCATION}/usages", list_usages),)
