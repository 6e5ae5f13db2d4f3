"""Scale sets for tests, as `az` and the SDKs declare and look at them."""

from typing import Any, Final

from forewarned.service.ports import Snapshot
from tests.control.arm.emulator import COMPUTE, Emulator

SETS: Final = f"{COMPUTE}/virtualMachineScaleSets"
WEB: Final = f"{SETS}/web"
IMAGE: Final = {"publisher": "P", "offer": "O", "sku": "S", "version": "1.0.0"}


def a_set(capacity: int = 2, **properties: object) -> dict[str, Any]:
    """As `az vmss create` declares one, cut down."""
    return {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "capacity": capacity},
        "properties": {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": None,
            "upgradePolicy": {"mode": "manual"},
            "virtualMachineProfile": {
                "storageProfile": {"imageReference": IMAGE, "osDisk": {"osType": "Linux"}},
                "osProfile": {"computerNamePrefix": "webab", "adminUsername": "ada"},
                "scheduledEventsProfile": {
                    "terminateNotificationProfile": {"notBeforeTimeout": "PT5M", "enable": "true"}
                },
            },
            **properties,
        },
    }


def profile(**parts: object) -> dict[str, Any]:
    return {"properties": {"virtualMachineProfile": parts}}


def terminate(**values: object) -> dict[str, Any]:
    return profile(scheduledEventsProfile={"terminateNotificationProfile": values})


async def instances(arm: Emulator, path: str = WEB) -> list[Any]:
    listed: list[Any] = (await arm.good("GET", f"{path}/virtualMachines"))["value"]
    return listed


async def ids(arm: Emulator, path: str = WEB) -> list[str]:
    return [each["instanceId"] for each in await instances(arm, path)]


async def terminate_profile(arm: Emulator) -> Any:
    shown = await arm.good("GET", WEB)
    events = shown["properties"]["virtualMachineProfile"]["scheduledEventsProfile"]
    return events["terminateNotificationProfile"]


async def everything(arm: Emulator) -> object:
    """All that a refused request must leave as it was."""

    def question(snapshot: Snapshot) -> object:
        return (
            [saved.revision for saved in snapshot.scopes()],
            [binding.name for binding in snapshot.bindings()],
            list(snapshot.declarations("/")),
        )

    return await arm.use_cases.engine.ask(question)
