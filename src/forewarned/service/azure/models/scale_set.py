"""A scale set as it is declared.

Its document is what clients declared, without what follows from its VMs. A set that came with the
fleet has none, so it is made from the VMs: then a client can change a part of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from forewarned.core.model import Priority
from forewarned.service.azure.inventory import ScaleSetView, VmView, taken
from forewarned.service.azure.models import policies, profiles
from forewarned.service.azure.models.defaults import complete_profile
from forewarned.service.azure.models.documents import Fields, Json, decoded, without
from forewarned.service.azure.models.origin import ORIGIN
from forewarned.service.azure.models.policies import POLICY
from forewarned.service.azure.models.profiles import EVENTS_PROFILE, USUAL_SIZE, Notices
from forewarned.service.fleet.declaration import (
    SCALE_SET_FAULT_DOMAINS,
    Orchestration,
    ScaleSet,
)
from forewarned.service.ports import Snapshot

VM_PROFILE: Final = "virtualMachineProfile"


class UpgradeMode(StrEnum):
    MANUAL = "Manual"
    AUTOMATIC = "Automatic"
    ROLLING = "Rolling"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredScaleSet(ScaleSet):
    """Its capacity is the number of VMs that it is to have."""

    location: str
    upgrade_mode: UpgradeMode
    document: Json
    """All that is declared, completed. The other fields are what the service understands."""

    @property
    def model_document(self) -> Json:
        return model_part(self.document)


# --- reading -------------------------------------------------------------------------------------


def declared_set(view: ScaleSetView) -> DeclaredScaleSet:
    return read_set(document_of(view), name=view.id.name, capacity=len(view.staying))


def read_set(document: Json, *, name: str, capacity: int) -> DeclaredScaleSet:
    """`document` is complete."""
    resource = Fields(document)
    properties = resource.object("properties")
    profile = properties.object(VM_PROFILE)
    fault_domains = properties.number("platformFaultDomainCount")
    return DeclaredScaleSet(
        name=name,
        capacity=capacity,
        orchestration=Orchestration(properties.text("orchestrationMode") or Orchestration.UNIFORM),
        zones=profiles.read_zones(resource),
        fault_domains=SCALE_SET_FAULT_DOMAINS if fault_domains is None else fault_domains,
        single_placement_group=bool(properties.flag("singlePlacementGroup")),
        computer_name_prefix=profile.object("osProfile").word("computerNamePrefix") or "",
        model=profiles.read_model(resource, profile, size=resource.object("sku").word("name")),
        policy=policies.read_policy(properties),
        location=resource.word("location") or "",
        upgrade_mode=UpgradeMode(
            properties.object("upgradePolicy").text("mode") or UpgradeMode.MANUAL
        ),
        document=document,
    )


def document_of(view: ScaleSetView) -> Json:
    """As it was declared, or as its VMs are if it came with the fleet. It is complete."""
    document = without(decoded(view.declaration), ORIGIN) or _described(view)
    complete(document, view.id.name)
    return document


def complete(document: Json, name: str) -> None:
    properties = document.get("properties", {})
    is_flexible = properties.get("orchestrationMode") == Orchestration.FLEXIBLE
    profile = completed(properties.get(VM_PROFILE) or {}, name, is_flexible=is_flexible)
    if profile:
        document["properties"] = {**properties, VM_PROFILE: profile}


def completed(profile: Mapping[str, Any], set_name: str, *, is_flexible: bool) -> Json:
    """A complete `virtualMachineProfile`; a Flexible set need not have one."""
    result = dict(profile)
    if result or not is_flexible:
        os_type = profiles.read_os_type(Fields(result))
        complete_profile(result, set_name, os_type=os_type, is_flexible=is_flexible)
    return result


def _described(view: ScaleSetView) -> Json:
    profile: Json = {}
    properties: Json = {
        "orchestrationMode": Orchestration.FLEXIBLE if view.is_flexible else Orchestration.UNIFORM,
        "singlePlacementGroup": False,
        "upgradePolicy": {"mode": UpgradeMode.MANUAL},
        VM_PROFILE: profile,
    }
    described: Json = {"sku": {"name": USUAL_SIZE}, "tags": {}, "properties": properties}
    if view.location:
        described["location"] = view.location
    policy = policies.show_policy(view.policy)
    if policy is not None:
        properties[POLICY] = policy
    if not view.vms:
        return described
    first = view.vms[0]
    described["sku"] = {"name": first.profile.size}
    described["tags"] = dict(first.profile.tags)
    domains = [vm.resource.fault_domain for vm in view.vms]
    properties["platformFaultDomainCount"] = taken(domains, SCALE_SET_FAULT_DOMAINS)
    zones = sorted({vm.profile.zone for vm in view.vms} - {""})
    if zones:
        described["zones"] = zones
    # Host names end in six characters of their own.
    profile["osProfile"] = {"computerNamePrefix": first.profile.computer_name[:-6]}
    profile["storageProfile"] = {"osDisk": {"osType": first.profile.os_type}}
    if first.resource.priority is Priority.SPOT:
        profile["priority"] = first.resource.priority
        profile["evictionPolicy"] = first.resource.eviction_policy
    notices = profiles.show_notices(
        Notices(terminate=first.resource.terminate_notice, image=first.profile.image_notice)
    )
    if notices is not None:
        profile[EVENTS_PROFILE] = notices
    return described


# --- models --------------------------------------------------------------------------------------


def model_part(document: Mapping[str, Any]) -> Json:
    """What VMs are made from. Extensions come and go without VMs being changed."""
    properties = document.get("properties", {})
    return {
        # The tier is in the name, and clients that got it from here send it back.
        "sku": {"name": document.get("sku", {}).get("name")},
        "tags": document.get("tags", {}),
        VM_PROFILE: without(properties.get(VM_PROFILE, {}), "extensionProfile"),
    }


def image_of(model: Mapping[str, Any]) -> object:
    """The image on the disk of a VM of this model: from the marketplace, or a file."""
    storage = model.get(VM_PROFILE, {}).get("storageProfile", {})
    return storage.get("imageReference"), storage.get("osDisk", {}).get("image")


def model_path(set_path: str, revision: int) -> str:
    """Where a model is stored for as long as VMs may be on it."""
    return f"{set_path}/models/{revision}"


class ModelsInUse:
    """The models that a set's VMs are on, each read once."""

    def __init__(self, snapshot: Snapshot, view: ScaleSetView) -> None:
        self._snapshot = snapshot
        self._view = view
        self._known: dict[int, Json] = {view.revision: model_part(document_of(view))}

    @property
    def latest(self) -> Json:
        return self._known[self._view.revision]

    def of(self, vm: VmView) -> Json:
        revision = vm.profile.model_revision
        if revision not in self._known:
            self._known[revision] = self._read(vm)
        return self._known[revision]

    def _read(self, vm: VmView) -> Json:
        """Of a VM that came with the fleet, only the operating system of its model is known."""
        path = model_path(self._view.id.path, vm.profile.model_revision)
        stored = self._snapshot.declaration(path)
        disk = {"storageProfile": {"osDisk": {"osType": vm.profile.os_type}}}
        model = decoded(stored) or {VM_PROFILE: disk}
        profile = completed(
            model.get(VM_PROFILE, {}), self._view.id.name, is_flexible=vm.profile.is_flexible
        )
        return {**model, VM_PROFILE: profile}
