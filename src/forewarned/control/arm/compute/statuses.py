"""The state of a VM in the words of its instance view, such as `PowerState/running`."""

from typing import Final

from forewarned.core.model import EventSource, EventStatus, EventType, ResourceState
from forewarned.service.azure.inventory import VmView
from forewarned.service.azure.models.documents import Json

_PROVISIONING: Final = {
    "succeeded": "Provisioning succeeded",
    "updating": "Updating",
    "deleting": "Deleting",
}
_POWER: Final = {
    ResourceState.RUNNING: ("running", "VM running"),
    # It comes back by itself, without being started.
    ResourceState.INTERRUPTED: ("running", "VM running"),
    ResourceState.STOPPED: ("stopped", "VM stopped"),
    ResourceState.DEALLOCATED: ("deallocated", "VM deallocated"),
}


def provisioning_state(vm: VmView) -> str:
    return "Deleting" if vm.is_leaving else "Succeeded"


def statuses(vm: VmView) -> list[Json]:
    code, shown = _POWER[vm.resource.state]
    return [
        provisioning_status(provisioning_state(vm)),
        {"code": f"PowerState/{code}", "level": "Info", "displayStatus": shown},
    ]


def provisioning_status(state: str) -> Json:
    """`state` is a `provisioningState`."""
    word = state.lower()
    return {
        "code": f"ProvisioningState/{word}",
        "level": "Info",
        "displayStatus": _PROVISIONING[word],
    }


def maintenance_status(vm: VmView) -> Json | None:
    """What the platform is about to do to a VM; None for nothing."""
    for event in vm.events:
        if event.source is not EventSource.PLATFORM or event.type is EventType.PREEMPT:
            continue
        shown: Json = {
            # Its owner may let the platform begin early, by performMaintenance.
            "isCustomerInitiatedMaintenanceAllowed": event.status is EventStatus.SCHEDULED,
            "preMaintenanceWindowStartTime": event.created_at.isoformat(),
            "lastOperationResultCode": "None",
        }
        begins_at = event.not_before or event.started_at
        if begins_at is not None:
            shown["preMaintenanceWindowEndTime"] = begins_at.isoformat()
            shown["maintenanceWindowStartTime"] = begins_at.isoformat()
        if event.description:
            shown["lastOperationMessage"] = event.description
        return shown
    return None


def vm_view(vm: VmView) -> Json:
    """What the instance view of a VM has, whether or not it is an instance of a set."""
    shown: Json = {
        "computerName": vm.profile.computer_name,
        "osName": vm.profile.os_type,
        "statuses": statuses(vm),
    }
    maintenance = maintenance_status(vm)
    if maintenance is not None:
        shown["maintenanceRedeployStatus"] = maintenance
    return shown
