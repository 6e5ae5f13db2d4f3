"""VMs as clients declare them, and the places they are at."""

from typing import Any, Final

from tests.control.arm.asking import SUBSCRIPTION, VERSION
from tests.control.arm.emulator import COMPUTE, GROUP

VMS: Final = f"{COMPUTE}/virtualMachines"
WEB: Final = f"{VMS}/web"
DEMO: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/demo/providers/Microsoft.Compute"
INSTANCE_VIEW: Final = f"?api-version={VERSION}&$expand=instanceView"
PLAIN: Final = {"location": "local", "properties": {}}
NOTICED: Final = {
    "location": "local",
    "properties": {
        "scheduledEventsProfile": {
            "terminateNotificationProfile": {"enable": "true", "notBeforeTimeout": "PT10M"}
        }
    },
}
SPOT: Final = {"location": "local", "properties": {"priority": "Spot", "evictionPolicy": "Delete"}}
FULL: Final[dict[str, Any]] = {
    "location": "local",
    "tags": {"app": "shop"},
    "zones": ["2"],
    "properties": {
        "hardwareProfile": {"vmSize": "Standard_B1s"},
        "storageProfile": {
            "imageReference": {"publisher": "p", "offer": "o", "sku": "s", "version": "1.2.3"},
            "osDisk": {"osType": "Windows", "createOption": "fromImage", "name": None},
        },
        "osProfile": {"computerName": "webby", "adminUsername": "ada"},
        "networkProfile": {
            "networkInterfaces": [{"id": f"{GROUP}/nic", "properties": {"primary": True}}]
        },
        "scheduledEventsPolicy": {
            "userInitiatedReboot": {"automaticallyApprove": True},
            "scheduledEventsAdditionalPublishingTargets": {
                "eventGridAndResourceGraph": {"enable": True}
            },
        },
    },
}
"""As `az vm create` has it, shortened."""


def statuses(view: Any) -> list[str]:  # JSON
    return [status["code"] for status in view["statuses"]]
