"""What a change makes of a scale set: merged into what is declared, checked, and completed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from forewarned.service.azure.models import policies, profiles
from forewarned.service.azure.models.documents import (
    Fields,
    InvalidPropertyError,
    Json,
    PropertyChangeError,
    at,
    changes,
    merged_resource,
    put_at,
    without,
)
from forewarned.service.azure.models.origin import ORIGIN
from forewarned.service.azure.models.profiles import EVENTS_PROFILE, USUAL_SIZE
from forewarned.service.azure.models.scale_set import (
    VM_PROFILE,
    DeclaredScaleSet,
    complete,
    read_set,
)
from forewarned.service.fleet.declaration import PLACEMENT_GROUP_SIZE, Orchestration

LARGEST_SET: Final = 1000
MOST_FAULT_DOMAINS: Final = 5

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
    # Part of a resource in a template, but not of the resource itself.
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
# Azure never shows these again, so there is no need to store them.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSetChange:
    """What an operator asks of a scale set. None leaves a property as it is, or at its default."""

    capacity: int | None = None
    size: str | None = None
    orchestration: Orchestration | None = None
    is_spot: bool = False
    is_notified: bool | None = None
    """Whether instances get notice before they are deleted."""
    terminate_notice: timedelta | None = None
    """How much notice: the portal's termination delay."""

    def document(self) -> Json:
        """As a client would send it."""
        document: Json = {}
        if self.capacity is not None:
            put_at(document, "sku.capacity", self.capacity)
        if self.size is not None:
            put_at(document, "sku.name", self.size)
        if self.orchestration is not None:
            put_at(document, "properties.orchestrationMode", self.orchestration)
        profile = f"properties.{VM_PROFILE}"
        if self.is_spot:
            put_at(document, f"{profile}.priority", "Spot")
        if self.is_notified is not None:
            shown = profiles.show_termination(self.terminate_notice, is_on=self.is_notified)
            put_at(document, f"{profile}.{EVENTS_PROFILE}", shown)
        return document


def refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidPropertyError(
            "vmScaleSetName",
            f"The scale set name '{name[:100]}' is invalid: expected 1 to 64 letters, digits,"
            " periods, underscores and hyphens, beginning with a letter or digit.",
        )


def revised_set(
    former: DeclaredScaleSet | None, sent: Mapping[str, Any], *, name: str, location: str
) -> DeclaredScaleSet:
    """What a `PUT` or `PATCH` makes of a set. `location` is that of a new set which says none."""
    before: Json = {} if former is None else former.document
    document = without(
        merged_resource(before or {"tags": {}}, without(sent, *_DERIVED)), *_DERIVED, *_SECRET
    )
    here = before.get("location")
    put_at(document, "location", profiles.read_location(Fields(document), here=here) or location)
    capacity = _capacity(Fields(sent), former)
    _refuse_invalid(Fields(changes(before, document)), Fields(document))
    _keep_settled(document, before)
    _settle(document, capacity)
    complete(document, name)
    revised = read_set(document, name=name, capacity=capacity)
    _refuse_too_large(revised)
    if former is not None:
        _refuse_changes(former, revised)
    return revised


def _capacity(sent: Fields, former: DeclaredScaleSet | None) -> int:
    sku = sent.object("sku")
    given = sku.number("capacity")
    if given is None:
        return 0 if former is None else former.capacity
    if not 0 <= given <= LARGEST_SET:
        raise sku.wrong("capacity", f"expected a number from 0 to {LARGEST_SET}")
    return given


def _keep_settled(document: Json, before: Json) -> None:
    """Templates of `az` have null for what is to stay as it is, or at its default."""
    properties = Fields(document).object("properties")
    for name in ("orchestrationMode", "singlePlacementGroup") if before else ():
        if name not in properties:
            put_at(document, f"properties.{name}", before["properties"].get(name))
    storage = f"properties.{VM_PROFILE}.storageProfile"
    image = at(before, f"{storage}.imageReference")
    is_from_file = at(document, f"{storage}.osDisk.image") is not None
    if image is not None and at(document, f"{storage}.imageReference") is None and not is_from_file:
        put_at(document, f"{storage}.imageReference", image)


def _refuse_invalid(news: Fields, resource: Fields) -> None:
    """What a client changes must be valid in Azure. Raises InvalidPropertyError."""
    profiles.refuse_tags(news, resource)
    profiles.refuse_zones(news)
    sku = news.object("sku")
    size = sku.text("name")
    if size and not _SIZE.fullmatch(size):
        raise sku.wrong("name", "expected the name of a size such as Standard_D2s_v5")
    properties = news.object("properties")
    fault_domains = properties.number("platformFaultDomainCount")
    if fault_domains is not None and not 1 <= fault_domains <= MOST_FAULT_DOMAINS:
        raise properties.wrong(
            "platformFaultDomainCount", f"expected a number from 1 to {MOST_FAULT_DOMAINS}"
        )
    profile = properties.object(VM_PROFILE)
    profiles.refuse_notices(profile)
    profiles.refuse_os_type(profile)
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
    """Fill in what was left out, and spell known words as Azure does."""
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
        raise properties.wrong(
            "singlePlacementGroup", "expected false in orchestration mode Flexible"
        )
    put_at(document, "properties.singlePlacementGroup", is_single)
    if fields.object("sku").word("name") is None:
        put_at(document, "sku.name", USUAL_SIZE)
    policies.settle_policy(document)
    profiles.settle_notices(document, Fields(document).object("properties").object(VM_PROFILE))


def _refuse_too_large(revised: DeclaredScaleSet) -> None:
    if revised.single_placement_group and revised.capacity > PLACEMENT_GROUP_SIZE:
        raise InvalidPropertyError(
            "sku.capacity",
            f"A scale set with a single placement group can have {PLACEMENT_GROUP_SIZE} VMs,"
            f" not {revised.capacity}: set properties.singlePlacementGroup to false.",
        )


def _refuse_changes(former: DeclaredScaleSet, revised: DeclaredScaleSet) -> None:
    """Some properties of a set are settled when it is created."""
    if former.location not in ("", revised.location):
        raise PropertyChangeError("location")
    if former.orchestration is not revised.orchestration:
        raise PropertyChangeError("orchestrationMode")
    if former.model.priority is not revised.model.priority:
        raise PropertyChangeError("priority")
    if revised.single_placement_group and not former.single_placement_group:
        raise PropertyChangeError("singlePlacementGroup")
    declared = at(former.document, "properties.platformFaultDomainCount")
    if declared not in (None, at(revised.document, "properties.platformFaultDomainCount")):
        raise PropertyChangeError("platformFaultDomainCount")
