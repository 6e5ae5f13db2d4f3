"""An availability set as it is declared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from forewarned.service.azure import inventory
from forewarned.service.azure.inventory import AvailabilitySetView
from forewarned.service.azure.models import policies, profiles
from forewarned.service.azure.models.documents import (
    Fields,
    Json,
    PropertyChangeError,
    changes,
    decoded,
    merged_resource,
    put_at,
    without,
)
from forewarned.service.azure.models.policies import POLICY
from forewarned.service.azure.models.virtual_machine import with_property
from forewarned.service.fleet.declaration import (
    FAULT_DOMAINS,
    UPDATE_DOMAINS,
    AvailabilitySet,
    FleetPlan,
)
from forewarned.service.fleet.validation import declaration_mistakes

_UPDATE_DOMAINS: Final = "platformUpdateDomainCount"
_FAULT_DOMAINS: Final = "platformFaultDomainCount"
_DERIVED: Final = (
    "id",
    "name",
    "type",
    "systemData",
    "properties.virtualMachines",
    "properties.statuses",
    "properties.virtualMachineScaleSetMigrationInfo",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAvailabilitySet(AvailabilitySet):
    document: Json
    """All that is declared. The other fields are what the service understands."""


def declared_availability_set(view: AvailabilitySetView) -> DeclaredAvailabilitySet:
    """As it was declared, or as its VMs are."""
    document = decoded(view.declaration)
    properties = Fields(document).object("properties")
    vms = [vm.resource for vm in view.vms]
    update_domains = properties.number(_UPDATE_DOMAINS) or inventory.taken(
        [vm.update_domain for vm in vms], UPDATE_DOMAINS
    )
    fault_domains = properties.number(_FAULT_DOMAINS) or inventory.taken(
        [vm.fault_domain for vm in vms], FAULT_DOMAINS
    )
    document.setdefault("location", view.location)
    document.setdefault("tags", {})
    document.setdefault("sku", {"name": "Aligned"})
    put_at(document, f"properties.{_UPDATE_DOMAINS}", update_domains)
    put_at(document, f"properties.{_FAULT_DOMAINS}", fault_domains)
    if policies.read_policy(Fields(document).object("properties")) != view.policy:
        document = with_property(document, POLICY, policies.show_policy(view.policy))
    return DeclaredAvailabilitySet(
        name=view.id.name,
        update_domains=update_domains,
        fault_domains=fault_domains,
        policy=view.policy,
        document=document,
    )


def revised_availability_set(
    former: DeclaredAvailabilitySet | None,
    sent: Mapping[str, Any],
    *,
    name: str,
    location: str,
) -> DeclaredAvailabilitySet:
    """What a `PUT` or `PATCH` makes of it. `location` is that of a new set which says none."""
    before = {} if former is None else former.document
    document = merged_resource(before, without(sent, *_DERIVED))
    resource = Fields(document)
    properties = resource.object("properties")
    here = before.get("location")
    document["location"] = profiles.read_location(resource, here=here) or here or location
    profiles.refuse_tags(Fields(changes(before, document)), resource)
    document["tags"] = profiles.read_tags(resource)
    resource.object("sku").text("name")
    policies.settle_policy(document)
    update_domains = properties.number(_UPDATE_DOMAINS)
    fault_domains = properties.number(_FAULT_DOMAINS)
    revised = DeclaredAvailabilitySet(
        name=name,
        update_domains=UPDATE_DOMAINS if update_domains is None else update_domains,
        fault_domains=FAULT_DOMAINS if fault_domains is None else fault_domains,
        policy=policies.read_policy(properties),
        document=document,
    )
    for mistake in declaration_mistakes(FleetPlan(availability_sets=(revised,))):
        raise mistake.error
    if former is not None:
        _refuse_changes(former, revised)
    put_at(document, f"properties.{_UPDATE_DOMAINS}", revised.update_domains)
    put_at(document, f"properties.{_FAULT_DOMAINS}", revised.fault_domains)
    return revised


def _refuse_changes(former: DeclaredAvailabilitySet, revised: DeclaredAvailabilitySet) -> None:
    if revised.document["location"] != former.document["location"]:
        raise PropertyChangeError("location")
    if revised.update_domains != former.update_domains:
        raise PropertyChangeError(f"properties.{_UPDATE_DOMAINS}")
    if revised.fault_domains != former.fault_domains:
        raise PropertyChangeError(f"properties.{_FAULT_DOMAINS}")
