"""What clients write about scale sets: their JSON, merged into the set's document and understood.

A set's document is what clients said of it, without what follows from its VMs. Of a set that came
with the fleet there is none, so it is made from the VMs: then a client may change a part of it.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from forewarned.control.arm.errors import invalid_parameter, settled
from forewarned.control.arm.fields import Fields, at, changes, merged_resource, put_at, without
from forewarned.control.arm.models.defaults import complete_profile
from forewarned.control.arm.models.origins import ORIGIN, came_with_fleet, mark
from forewarned.control.arm.models.policies import POLICY, read_policy, settle_policy, show_policy
from forewarned.control.arm.models.profiles import (
    EVENTS_PROFILE,
    USUAL_SIZE,
    Notices,
    read_eviction_policy,
    read_location,
    read_notices,
    read_os_type,
    read_priority,
    read_tags,
    read_zones,
    refuse_notices,
    refuse_old_version,
    refuse_os_type,
    refuse_tags,
    refuse_zones,
    settle_notices,
    show_notices,
)
from forewarned.control.arm.requests import Json
from forewarned.core.model import Priority
from forewarned.service.azure.inventory import ScaleSetView, taken
from forewarned.service.azure.scale_sets import WantedSet
from forewarned.service.fleet.declaration import (
    PLACEMENT_GROUP_SIZE,
    SCALE_SET_FAULT_DOMAINS,
    Model,
    Orchestration,
    ScaleSet,
)

LARGEST_SET: Final = 1000
MOST_FAULT_DOMAINS: Final = 5
VM_PROFILE: Final = "virtualMachineProfile"

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?")
_PREFIX: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SIZE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MODES: Final = {"uniform": "Uniform", "flexible": "Flexible"}
_UPGRADES: Final = {"manual": "Manual", "automatic": "Automatic", "rolling": "Rolling"}
_DERIVED: Final = (
    "id",
    "name",
    "type",
    "etag",
    # What a template says of a resource, and is none of its own.
    "apiVersion",
    "dependsOn",
    "sku.capacity",
    "properties.provisioningState",
    "properties.uniqueId",
    "properties.timeCreated",
    "properties.virtualMachineProfile.timeCreated",
    "properties.virtualMachineProfile.storageProfile.imageReference.exactVersion",
    ORIGIN,
)
# Azure shows none of these to anybody, so there is no need to keep them.
_SECRET: Final = (
    "properties.virtualMachineProfile.osProfile.adminPassword",
    "properties.virtualMachineProfile.osProfile.customData",
    "properties.virtualMachineProfile.osProfile.secrets",
    (
        "properties.virtualMachineProfile.osProfile.windowsConfiguration"
        ".additionalUnattendContent.content"
    ),
    "properties.virtualMachineProfile.extensionProfile.extensions.properties.protectedSettings",
    "properties.virtualMachineProfile.userData",
)
_PARTS: Final = ("osProfile", "networkProfile", "hardwareProfile", "securityProfile")


# --- documents -----------------------------------------------------------------------------------


def document_of(view: ScaleSetView) -> Json:
    """As it was declared; of a set that came with the fleet, as its VMs are. It is complete."""
    kept = "" if view.declaration is None else view.declaration.document
    document = without(decoded(kept), ORIGIN) if kept else _described(view)
    _complete(document, view.id.name)
    return document


def _complete(document: Json, name: str) -> None:
    properties = document.get("properties", {})
    is_flexible = properties.get("orchestrationMode") == Orchestration.FLEXIBLE
    profile = completed(properties.get(VM_PROFILE) or {}, name, is_flexible=is_flexible)
    if profile:
        document["properties"] = {**properties, VM_PROFILE: profile}


def completed(profile: Mapping[str, Any], set_name: str, *, is_flexible: bool) -> Json:
    """A `virtualMachineProfile` with all that it has; a Flexible set need not have one."""
    result = dict(profile)
    if result or not is_flexible:
        os_type = read_os_type(Fields(result))
        complete_profile(result, set_name, os_type=os_type, is_flexible=is_flexible)
    return result


def decoded(document: str) -> Json:
    """Of a document that is kept, and so is an object."""
    read: Json = msgspec.json.decode(document)
    return read


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
    """What a VM of this model has on its disk: of a marketplace, or a file."""
    storage = model.get(VM_PROFILE, {}).get("storageProfile", {})
    return storage.get("imageReference"), storage.get("osDisk", {}).get("image")


def read_model(document: Mapping[str, Any]) -> Model:
    resource = Fields(document)
    profile = resource.object("properties").object(VM_PROFILE)
    priority = read_priority(profile)
    notices = read_notices(profile, priority=priority)
    size = resource.object("sku").word("name")
    return Model(
        size=USUAL_SIZE if size is None else size,
        os_type=read_os_type(profile),
        priority=priority,
        eviction_policy=read_eviction_policy(profile),
        terminate_notice=notices.terminate,
        image_notice=notices.image,
        tags=read_tags(resource),
    )


def _described(view: ScaleSetView) -> Json:
    profile: Json = {}
    properties: Json = {
        "orchestrationMode": "Flexible" if view.is_flexible else "Uniform",
        "singlePlacementGroup": False,
        "upgradePolicy": {"mode": "Manual"},
        VM_PROFILE: profile,
    }
    described: Json = {"sku": {"name": USUAL_SIZE}, "tags": {}, "properties": properties}
    if view.location:
        described["location"] = view.location
    policy = show_policy(view.policy)
    if policy is not None:
        properties[POLICY] = policy
    if not view.machines:
        return described
    first = view.machines[0]
    described["sku"] = {"name": first.profile.size}
    described["tags"] = dict(first.profile.tags)
    domains = [machine.resource.fault_domain for machine in view.machines]
    properties["platformFaultDomainCount"] = taken(domains, SCALE_SET_FAULT_DOMAINS)
    zones = sorted({machine.profile.zone for machine in view.machines} - {""})
    if zones:
        described["zones"] = zones
    # Host names end in six characters of their own.
    profile["osProfile"] = {"computerNamePrefix": first.profile.computer_name[:-6]}
    profile["storageProfile"] = {"osDisk": {"osType": first.profile.os_type}}
    if first.resource.priority is Priority.SPOT:
        profile["priority"] = first.resource.priority
        profile["evictionPolicy"] = first.resource.eviction_policy
    notices = show_notices(
        Notices(terminate=first.resource.terminate_notice, image=first.profile.image_notice)
    )
    if notices is not None:
        profile[EVENTS_PROFILE] = notices
    return described


# --- what is wanted ------------------------------------------------------------------------------


def refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise invalid_parameter(
            "vmScaleSetName",
            f"The scale set name '{name[:100]}' is invalid: expected 1 to 64 letters, digits,"
            " periods, underscores and hyphens, beginning with a letter or digit.",
        )


def refuse_version(sent: Mapping[str, Any], api_version: str) -> None:
    profile = Fields(sent).object("properties").object(VM_PROFILE)
    refuse_old_version(profile, api_version, "VirtualMachineProfile")


def wanted_set(
    view: ScaleSetView | None, sent: Mapping[str, Any], *, name: str, location: str
) -> WantedSet:
    """What a `PUT` or `PATCH` makes of a set. `location` is that of a new set which says none."""
    former = None if view is None else document_of(view)
    document = without(
        merged_resource(former or {"tags": {}}, without(sent, *_DERIVED)), *_DERIVED, *_SECRET
    )
    here = None if former is None else former.get("location")
    put_at(document, "location", read_location(Fields(document), here=here) or location)
    capacity = _capacity(Fields(sent), view)
    _refuse_invalid(Fields(changes(former or {}, document)), Fields(document))
    _keep_settled(document, former)
    _settle(document, capacity)
    name = name if view is None else view.id.name
    _complete(document, name)
    declared = _declared(document, name, capacity)
    if former is not None:
        _refuse_changes(former, document)
    if view is not None and came_with_fleet(view.declaration):
        mark(document)
    model = model_part(document)
    before = None if former is None else model_part(former)
    upgrade_policy = Fields(document).object("properties").object("upgradePolicy")
    return WantedSet(
        declared=declared,
        location=document["location"],
        document=_encoded(document),
        model=_encoded(model),
        model_changed=model != before,
        upgrades_by_itself=upgrade_policy.text("mode") == "Automatic",
        reimaged=before is not None and image_of(model) != image_of(before),
    )


def _capacity(sent: Fields, view: ScaleSetView | None) -> int:
    sku = sent.object("sku")
    given = sku.number("capacity")
    if given is None:
        return 0 if view is None else len(view.staying)
    if not 0 <= given <= LARGEST_SET:
        raise sku.wrong("capacity", f"expected a number from 0 to {LARGEST_SET}")
    return given


def _keep_settled(document: Json, former: Json | None) -> None:
    """Templates of `az` have null where they mean: as it is, or as is usual."""
    properties = Fields(document).object("properties")
    for name in () if former is None else ("orchestrationMode", "singlePlacementGroup"):
        if name not in properties and former is not None:
            put_at(document, f"properties.{name}", former["properties"].get(name))
    storage = f"properties.{VM_PROFILE}.storageProfile"
    image = at(former or {}, f"{storage}.imageReference")
    is_from_file = at(document, f"{storage}.osDisk.image") is not None
    if image is not None and at(document, f"{storage}.imageReference") is None and not is_from_file:
        put_at(document, f"{storage}.imageReference", image)


def _refuse_invalid(news: Fields, resource: Fields) -> None:
    """What a client changes must be such as Azure has it. Raises ArmError."""
    refuse_tags(news, resource)
    refuse_zones(news)
    sku = news.object("sku")
    size = sku.text("name")
    if size and not _SIZE.fullmatch(size):
        raise sku.wrong("name", "expected the name of a size such as Standard_D2s_v5")
    profile = news.object("properties").object(VM_PROFILE)
    refuse_notices(profile)
    refuse_os_type(profile)
    for part in _PARTS:
        profile.object(part)
    os_profile, storage = profile.object("osProfile"), profile.object("storageProfile")
    prefix = os_profile.text("computerNamePrefix")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise os_profile.wrong("computerNamePrefix", "expected 1 to 64 letters, digits and hyphens")
    storage.object("imageReference")
    storage.object("osDisk").object("image")
    storage.object("osDisk").object("managedDisk")
    storage.objects("dataDisks")
    profile.object("networkProfile").objects("networkInterfaceConfigurations")
    profile.object("extensionProfile").objects("extensions")


def _settle(document: Json, capacity: int) -> None:
    """Say what was left out, and write known words as Azure does."""
    fields = Fields(document)
    properties = fields.object("properties")
    mode = properties.one_of("orchestrationMode", _MODES) or "Uniform"
    put_at(document, "properties.orchestrationMode", mode)
    upgrade = properties.object("upgradePolicy").one_of("mode", _UPGRADES) or "Manual"
    put_at(document, "properties.upgradePolicy.mode", upgrade)
    is_single = properties.flag("singlePlacementGroup")
    if is_single is None:
        is_single = mode == "Uniform" and capacity <= PLACEMENT_GROUP_SIZE
    elif is_single and mode == "Flexible":
        raise properties.wrong("singlePlacementGroup", "it must be false with mode Flexible")
    put_at(document, "properties.singlePlacementGroup", is_single)
    if fields.object("sku").word("name") is None:
        put_at(document, "sku.name", USUAL_SIZE)
    settle_policy(document)
    settle_notices(document, Fields(document).object("properties").object(VM_PROFILE))


def _declared(document: Json, name: str, capacity: int) -> ScaleSet:
    resource = Fields(document)
    properties = resource.object("properties")
    os_profile = properties.object(VM_PROFILE).object("osProfile")
    is_single = bool(properties.flag("singlePlacementGroup"))
    if is_single and capacity > PLACEMENT_GROUP_SIZE:
        raise invalid_parameter(
            "sku.capacity",
            f"A scale set with a single placement group can have {PLACEMENT_GROUP_SIZE} VMs,"
            f" not {capacity}: set properties.singlePlacementGroup to false.",
        )
    return ScaleSet(
        name=name,
        capacity=capacity,
        orchestration=Orchestration(properties.text("orchestrationMode") or "Uniform"),
        zones=read_zones(resource),
        fault_domains=_fault_domains(properties),
        single_placement_group=is_single,
        computer_name_prefix=os_profile.word("computerNamePrefix") or "",
        model=read_model(document),
        policy=read_policy(properties),
    )


def _fault_domains(properties: Fields) -> int:
    given = properties.number("platformFaultDomainCount")
    if given is None:
        return SCALE_SET_FAULT_DOMAINS
    if not 1 <= given <= MOST_FAULT_DOMAINS:
        raise properties.wrong(
            "platformFaultDomainCount", f"expected a number from 1 to {MOST_FAULT_DOMAINS}"
        )
    return given


def _refuse_changes(former: Json, document: Json) -> None:
    """Some of what a set is was settled when it was made."""
    before, after = Fields(former), Fields(document)
    if former.get("location") not in (None, document["location"]):
        raise settled("location")
    properties, wanted = before.object("properties"), after.object("properties")
    if properties.text("orchestrationMode") != wanted.text("orchestrationMode"):
        raise settled("orchestrationMode")
    if read_priority(properties.object(VM_PROFILE)) is not read_priority(wanted.object(VM_PROFILE)):
        raise settled("priority")
    if wanted.flag("singlePlacementGroup") and not properties.flag("singlePlacementGroup"):
        raise settled("singlePlacementGroup")
    if properties.number("platformFaultDomainCount") not in (
        None,
        wanted.number("platformFaultDomainCount"),
    ):
        raise settled("platformFaultDomainCount")


def _encoded(document: Json) -> str:
    return msgspec.json.encode(document).decode()
