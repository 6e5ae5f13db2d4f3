"""Availability sets: declared, shown, deleted. No client waits for any of it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from forewarned.control.arm.answers import ArmAnswer, finished, no_content, ok
from forewarned.control.arm.errors import settled
from forewarned.control.arm.fields import Fields, changes, merged_resource, put_at, without
from forewarned.control.arm.models.policies import POLICY, read_policy, settle_policy, show_policy
from forewarned.control.arm.models.profiles import read_location, read_tags, refuse_tags
from forewarned.control.arm.models.vm_views import decoded, replaced
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked, Json
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import Operation, delete, patch, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.service.azure import availability_sets, inventory
from forewarned.service.azure.availability_sets import (
    UnknownAvailabilitySetError,
    WantedAvailabilitySet,
)
from forewarned.service.azure.inventory import AvailabilitySetView
from forewarned.service.azure.resource_ids import AVAILABILITY_SETS, ResourceId
from forewarned.service.fleet.declaration import (
    FAULT_DOMAINS,
    UPDATE_DOMAINS,
    AvailabilitySet,
    FleetPlan,
)
from forewarned.service.fleet.validation import declaration_faults
from forewarned.service.ports import Snapshot, Transaction

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


# --- documents -----------------------------------------------------------------------------------


def domains(view: AvailabilitySetView) -> tuple[int, int]:
    """Update and fault domains: declared, or as far as its VMs tell."""
    properties = Fields(decoded(view.declaration)).object("properties")
    here = [machine.resource for machine in view.machines]
    return (
        properties.number(_UPDATE_DOMAINS)
        or inventory.taken([vm.update_domain for vm in here], UPDATE_DOMAINS),
        properties.number(_FAULT_DOMAINS)
        or inventory.taken([vm.fault_domain for vm in here], FAULT_DOMAINS),
    )


def _settings(view: AvailabilitySetView) -> Json:
    document = decoded(view.declaration)
    document.setdefault("location", view.location)
    document.setdefault("tags", {})
    document.setdefault("sku", {"name": "Aligned"})
    update_domains, fault_domains = domains(view)
    put_at(document, f"properties.{_UPDATE_DOMAINS}", update_domains)
    put_at(document, f"properties.{_FAULT_DOMAINS}", fault_domains)
    if read_policy(Fields(document).object("properties")) == view.policy:
        return document
    return replaced(document, POLICY, show_policy(view.policy))


def shown(view: AvailabilitySetView) -> Json:
    document = _settings(view)
    members = [{"id": inventory.resource_id(machine).path} for machine in view.machines]
    put_at(document, "properties.virtualMachines", members)
    return {"id": view.id.path, "name": view.id.name, "type": AVAILABILITY_SETS, **document}


def _wanted(
    id_: ResourceId,
    body: Mapping[str, Any],
    view: AvailabilitySetView | None,
    *,
    usual_location: str,
) -> WantedAvailabilitySet:
    sent = without(body, *_DERIVED)
    before = {} if view is None else _settings(view)
    document = merged_resource(before, sent)
    resource = Fields(document)
    properties = resource.object("properties")
    here = None if view is None else before["location"]
    document["location"] = read_location(resource, here=here) or usual_location
    if here is not None and document["location"] != here:
        raise settled("location")
    refuse_tags(Fields(changes(before, document)), resource)
    document["tags"] = read_tags(resource)
    resource.object("sku").text("name")
    declared = AvailabilitySet(
        name=id_.name,
        update_domains=_count(properties, _UPDATE_DOMAINS, UPDATE_DOMAINS),
        fault_domains=_count(properties, _FAULT_DOMAINS, FAULT_DOMAINS),
        policy=read_policy(properties),
    )
    for fault in declaration_faults(FleetPlan(availability_sets=(declared,))):
        raise fault.error
    counts = (declared.update_domains, declared.fault_domains)
    if view is not None and counts != (settled_counts := domains(view)):
        name = _UPDATE_DOMAINS if counts[0] != settled_counts[0] else _FAULT_DOMAINS
        raise settled(f"properties.{name}")
    put_at(document, f"properties.{_UPDATE_DOMAINS}", counts[0])
    put_at(document, f"properties.{_FAULT_DOMAINS}", counts[1])
    settle_policy(document)
    return WantedAvailabilitySet(
        document=msgspec.json.encode(document).decode(),
        policy=declared.policy,
        update_domains=declared.update_domains,
        fault_domains=declared.fault_domains,
    )


def _count(properties: Fields, name: str, usual: int) -> int:
    given = properties.number(name)
    return usual if given is None else given


# --- operations ----------------------------------------------------------------------------------


def put_in(
    tx: Transaction,
    services: ArmServices,
    asked: Asked,
    id_: ResourceId,
    body: Mapping[str, Any],
) -> AvailabilitySetView:
    """Make the set what the body says, as part of a transaction: for deployments too."""
    group = groups.find(tx, id_.subscription, id_.group)
    known = ResourceId(
        subscription=id_.subscription, group=group.name, type=AVAILABILITY_SETS, name=id_.name
    )
    location = groups.location_of(group) or services.location

    def revise(view: AvailabilitySetView | None) -> WantedAvailabilitySet:
        return _wanted(known, body, view, usual_location=location)

    view, _ = availability_sets.put(tx, known, revise, by=asked.by)
    return view


async def put_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    """200 for a new one too: clients take nothing else."""

    def work(tx: Transaction) -> Json:
        return shown(put_in(tx, services, asked, _id(asked), asked.body or {}))

    return ok(await services.engine.decide(work))


async def patch_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> Json:
        _find(tx, asked)
        return shown(put_in(tx, services, asked, _id(asked), asked.body or {}))

    return ok(await services.engine.decide(work))


async def show_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    return ok(shown(await services.engine.ask(lambda snapshot: _find(snapshot, asked))))


async def delete_set(services: ArmServices, asked: Asked) -> ArmAnswer:
    def work(tx: Transaction) -> bool:
        return availability_sets.drop(tx, _id(asked), by=asked.by)

    return finished() if await services.engine.decide(work) else no_content()


async def list_in_group(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> list[AvailabilitySetView]:
        subscription = asked.path["subscription"]
        view = groups.find(snapshot, subscription, asked.path["group"])
        return list(inventory.availability_sets(snapshot, subscription, view.name))

    return _listed(await services.engine.ask(question), asked)


async def list_in_subscription(services: ArmServices, asked: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> list[AvailabilitySetView]:
        return list(inventory.availability_sets(snapshot, asked.path["subscription"]))

    return _listed(await services.engine.ask(question), asked)


def _listed(views: list[AvailabilitySetView], asked: Asked) -> ArmAnswer:
    return ok(page(views, asked, lambda view: view.id.path.casefold(), show=shown))


def _find(snapshot: Snapshot, asked: Asked) -> AvailabilitySetView:
    id_ = _id(asked)
    view = inventory.availability_set(snapshot, id_)
    if view is None:
        groups.find(snapshot, id_.subscription, id_.group)
        raise UnknownAvailabilitySetError(id_.path)
    return view


def _id(asked: Asked) -> ResourceId:
    return asked.id_of(AVAILABILITY_SETS, asked.path["name"])


_SUBSCRIPTION: Final = "/subscriptions/{subscription}"
_GROUP: Final = f"{_SUBSCRIPTION}/resourceGroups/{{group}}"
_ONE: Final = f"{_GROUP}/providers/{AVAILABILITY_SETS}/{{name}}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    put(_ONE, put_set),
    patch(_ONE, patch_set),
    read(_ONE, show_set),
    delete(_ONE, delete_set),
    read(f"{_GROUP}/providers/{AVAILABILITY_SETS}", list_in_group),
    read(f"{_SUBSCRIPTION}/providers/{AVAILABILITY_SETS}", list_in_subscription),
)
