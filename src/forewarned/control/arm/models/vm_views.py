"""VMs as ARM shows them: what they are over what was declared of them.

Invariant: what a client declared it gets back, and where that and the VM differ
it is told of the VM. A VM that came with the fleet and was never declared here is shown all the
same.
"""

from typing import Final, NamedTuple

import msgspec

from forewarned.control.arm.compute.statuses import (
    maintenance_status,
    provisioning_state,
    show_instant,
    statuses,
)
from forewarned.control.arm.fields import Fields, at, put_at, without
from forewarned.control.arm.models.defaults import complete_machine, exact_version, hide_unknown_os
from forewarned.control.arm.models.origins import ORIGIN, came_with_fleet
from forewarned.control.arm.models.policies import POLICY, read_policy, show_policy
from forewarned.control.arm.models.profiles import (
    EVENTS_PROFILE,
    Notices,
    read_notices,
    show_notices,
)
from forewarned.control.arm.requests import Json
from forewarned.core.model import Priority
from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import Machine
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    MACHINES,
    SCALE_SETS,
    ResourceId,
)
from forewarned.service.azure.scale_sets import model_path
from forewarned.service.ports import Snapshot
from forewarned.service.records import Declaration

_PROPERTIES: Final = "properties"


# Of a set's model, what a VM that was made from it has too.
_FROM_MODEL: Final = ("storageProfile", "osProfile", "securityProfile", "billingProfile")


class Declared(NamedTuple):
    """What is said of a VM."""

    declaration: Declaration | None
    model: Json
    """What it was made from, in its Flexible set; empty for any other VM."""

    @property
    def document(self) -> Json:
        return decoded(self.declaration) or self.model


def declared(snapshot: Snapshot, machine: Machine) -> Declared:
    declaration = snapshot.declaration(inventory.resource_id(machine).path)
    return Declared(declaration, model_of(snapshot, machine))


def model_of(snapshot: Snapshot, machine: Machine) -> Json:
    """What the VM's set says of it, in the words of a VM; empty for a VM in none."""
    vm_profile = profile_of(snapshot, machine)
    parts = {name: vm_profile[name] for name in _FROM_MODEL if name in vm_profile}
    return without({_PROPERTIES: parts}, f"{_PROPERTIES}.osProfile.computerNamePrefix")


def profile_of(snapshot: Snapshot, machine: Machine) -> Json:
    """The `virtualMachineProfile` that the VM was made from; empty where no client declared one."""
    profile = machine.profile
    if not profile.scale_set or not profile.model_revision:
        return {}
    path = model_path(
        _neighbour(machine, SCALE_SETS, profile.scale_set).path, profile.model_revision
    )
    found: Json = decoded(snapshot.declaration(path)).get("virtualMachineProfile", {})
    return found


def decoded(declaration: Declaration | None) -> Json:
    """What is declared; nothing where nobody declared it."""
    text = "" if declaration is None else declaration.document
    document: Json = msgspec.json.decode(text) if text else {}
    return document


# --- what can be declared ------------------------------------------------------------------------


def settings(machine: Machine, declared: Declared) -> Json:
    """All that a client may say of the VM, as it is now."""
    document = without(declared.document, ORIGIN)
    profile = machine.profile
    document["location"] = profile.location
    document["tags"] = dict(profile.tags)
    if profile.zone:
        document["zones"] = [profile.zone]
    put_at(document, "properties.hardwareProfile.vmSize", profile.size)
    put_at(document, "properties.storageProfile.osDisk.osType", profile.os_type)
    put_at(document, "properties.osProfile.computerName", profile.computer_name)
    if machine.resource.priority is Priority.SPOT:
        put_at(document, "properties.priority", machine.resource.priority)
        put_at(document, "properties.evictionPolicy", machine.resource.eviction_policy)
    if profile.availability_set:
        id_ = _neighbour(machine, AVAILABILITY_SETS, profile.availability_set)
        put_at(document, "properties.availabilitySet", {"id": id_.path})
    if profile.scale_set:
        id_ = _neighbour(machine, SCALE_SETS, profile.scale_set)
        put_at(document, "properties.virtualMachineScaleSet", {"id": id_.path})
    complete_machine(document, inventory.resource_id(machine), os_type=profile.os_type)
    return _with_policy(_with_notices(document, machine), machine)


def _with_notices(document: Json, machine: Machine) -> Json:
    """A set may have brought the VM to a model that says otherwise than its own declaration."""
    priority = machine.resource.priority
    here = Notices(terminate=machine.resource.terminate_notice, image=machine.profile.image_notice)
    if read_notices(Fields(document).object(_PROPERTIES), priority=priority) == here:
        return document
    return replaced(document, EVENTS_PROFILE, show_notices(here))


def _with_policy(document: Json, machine: Machine) -> Json:
    """That of a VM in a set is the set's."""
    if not machine.is_alone:
        return without(document, f"{_PROPERTIES}.{POLICY}")
    if read_policy(Fields(document).object(_PROPERTIES)) == machine.policy:
        return document
    return replaced(document, POLICY, show_policy(machine.policy))


def replaced(document: Json, name: str, shown: Json | None) -> Json:
    """The document with another property of this name; without it for None."""
    changed = without(document, f"{_PROPERTIES}.{name}")
    if shown is not None:
        put_at(changed, f"{_PROPERTIES}.{name}", shown)
    return changed


def _neighbour(machine: Machine, type_: str, name: str) -> ResourceId:
    """A VM is in the resource group of its set."""
    profile = machine.profile
    return ResourceId(
        subscription=profile.subscription_id,
        group=profile.resource_group,
        type=type_,
        name=name,
    )


# --- what is shown besides -----------------------------------------------------------------------


def shown(machine: Machine, declared: Declared, *, with_instance_view: bool = False) -> Json:
    document = settings(machine, declared)
    show_exact_version(document)
    hide_unknown_os(document[_PROPERTIES])
    put_at(document, "properties.vmId", machine.profile.vm_id)
    put_at(document, "properties.provisioningState", provisioning_state(machine))
    declaration = declared.declaration
    if declaration is not None and not came_with_fleet(declaration):
        put_at(document, "properties.timeCreated", show_instant(declaration.created_at))
    if with_instance_view:
        put_at(document, "properties.instanceView", instance_view(machine))
    return {
        "id": inventory.resource_id(machine).path,
        "name": machine.name,
        "type": MACHINES,
        **document,
    }


def show_exact_version(document: Json) -> None:
    """Which version of its image a VM has; a model says no more than `latest`, at times."""
    image = at(document, "properties.storageProfile.imageReference")
    if isinstance(image, dict) and (version := exact_version(image)):
        put_at(document, "properties.storageProfile.imageReference.exactVersion", version)


def instance_view(machine: Machine) -> Json:
    profile = machine.profile
    view: Json = {
        "computerName": profile.computer_name,
        "osName": profile.os_type,
        "disks": [],
        "statuses": statuses(machine),
    }
    if profile.availability_set:
        view["platformUpdateDomain"] = machine.resource.update_domain
        view["platformFaultDomain"] = machine.resource.fault_domain
    maintenance = maintenance_status(machine)
    if maintenance is not None:
        view["maintenanceRedeployStatus"] = maintenance
    return view
