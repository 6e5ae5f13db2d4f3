"""Upgrades that Azure makes by itself and this server does not; clients still ask for them.

VMs are brought to a model here by `manualupgrade`, or at once where the set's policy is Automatic.
"""

from typing import Final

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.compute.scale_sets import SET, find
from forewarned.control.arm.errors import not_found
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import Operation, read
from forewarned.service.ports import Snapshot


def list_os_upgrades(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    find(snapshot, asked)
    return ok({"value": []})


def show_rolling_upgrade(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    raise not_found(
        "NotFound",
        f"The scale set '{find(snapshot, asked).id.name}' has had no rolling upgrade: this server"
        " upgrades instances to a new model when they are updated, or at once if the upgrade policy"
        " is Automatic.",
    )


OPERATIONS: Final[tuple[Operation, ...]] = (
    read(f"{SET}/osUpgradeHistory", list_os_upgrades),
    read(f"{SET}/rollingUpgrades/latest", show_rolling_upgrade),
)
