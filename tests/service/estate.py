"""The whole engine over a store in memory and a clock that stands still, for tests of use cases."""

import ipaddress
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final, TypeVar

from forewarned.actuators.simulated import Timing
from forewarned.clock import VirtualClock
from forewarned.core.ids import EventId
from forewarned.core.model import Document, EventType, Policy, Priority
from forewarned.core.rules import Rules
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.azure import availability_sets, groups, inventory, scale_sets, vms
from forewarned.service.azure.context import AzureContext
from forewarned.service.azure.inventory import AvailabilitySetView, ScaleSetView, VmView
from forewarned.service.azure.models.documents import Json, put_at
from forewarned.service.azure.models.policies import show_policy
from forewarned.service.azure.models.profiles import Notices, show_notices
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    MACHINES,
    SCALE_SETS,
    ResourceId,
)
from forewarned.service.azure.scale_sets import SetOutcome
from forewarned.service.fleet.declaration import Model
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Caller
from forewarned.service.use_cases import UseCases
from tests.bases import a_basis, a_store
from tests.builders import MINUTE, NOON, OPERATOR, SECOND

T = TypeVar("T")

SUBSCRIPTION: Final = "11111111-2222-3333-4444-555555555555"
FIVE, TEN = 5 * MINUTE, 10 * MINUTE
RULES: Final = Rules(short_notice_allowed=True)
NETWORK: Final = ipaddress.ip_network("10.1.0.0/24")


def set_id(name: str = "web", group: str = "shop") -> ResourceId:
    return ResourceId(subscription=SUBSCRIPTION, group=group, type=SCALE_SETS, name=name)


def machine_id(name: str = "vm1", group: str = "shop") -> ResourceId:
    return ResourceId(subscription=SUBSCRIPTION, group=group, type=MACHINES, name=name)


def availability_id(name: str = "db", group: str = "shop") -> ResourceId:
    return ResourceId(subscription=SUBSCRIPTION, group=group, type=AVAILABILITY_SETS, name=name)


def profile(model: Model) -> Json:
    """What a VM's `properties` and a set's `virtualMachineProfile` say of a model alike."""
    declared: Json = {
        "priority": model.priority,
        "storageProfile": {"osDisk": {"osType": model.os_type}},
        "scheduledEventsProfile": show_notices(
            Notices(terminate=model.terminate_notice, image=model.image_notice)
        ),
    }
    if model.priority is Priority.SPOT:
        declared["evictionPolicy"] = model.eviction_policy
    return declared


class Estate:
    def __init__(self, use_cases: UseCases, documents: BoardDelivery, clock: VirtualClock) -> None:
        self.use_cases = use_cases
        self.documents = documents
        self.clock = clock

    @property
    def context(self) -> AzureContext:
        """Another one each time, as each use case takes its own."""
        return self.use_cases.new_context(OPERATOR)

    async def decide(self, work: Callable[[Transaction], T]) -> T:
        return await self.use_cases.engine.decide(work)

    async def ask(self, question: Callable[[Snapshot], T]) -> T:
        return await self.use_cases.engine.ask(question)

    async def put_set(
        self,
        name: str = "web",
        *,
        capacity: int | None = None,
        model: Model | None = None,
        flexible: bool = False,
        automatic: bool = False,
        zones: tuple[str, ...] = (),
        policy: Policy | None = None,
        group: str = "shop",
        image: str = "",
    ) -> SetOutcome:
        """What is None stays as it is."""
        sent: Json = {"location": "here"}
        if capacity is not None:
            put_at(sent, "sku.capacity", capacity)
        if flexible:
            put_at(sent, "properties.orchestrationMode", "Flexible")
        if automatic:
            put_at(sent, "properties.upgradePolicy.mode", "Automatic")
        if zones:
            sent["zones"] = list(zones)
        if policy is not None:
            put_at(sent, "properties.scheduledEventsPolicy", show_policy(policy))
        if model is not None:
            put_at(sent, "sku.name", model.size)
            put_at(sent, "properties.virtualMachineProfile", profile(model))
        if image:
            reference = "properties.virtualMachineProfile.storageProfile.imageReference"
            put_at(sent, reference, {"id": image})

        return await self.decide(
            lambda tx: scale_sets.put(tx, set_id(name, group), sent, context=self.context)
        )

    async def put_machine(
        self,
        name: str = "vm1",
        *,
        model: Model | None = None,
        group: str = "shop",
        location: str = "here",
        availability_set: str | None = None,
        scale_set: str | None = None,
        policy: Policy | None = None,
    ) -> VmView:
        sent: Json = {"location": location, "properties": profile(model or Model())}
        put_at(sent, "properties.hardwareProfile.vmSize", (model or Model()).size)
        if availability_set is not None:
            id_ = {"id": availability_id(availability_set).path}
            put_at(sent, "properties.availabilitySet", id_)
        if scale_set is not None:
            put_at(sent, "properties.virtualMachineScaleSet", {"id": set_id(scale_set).path})
        if policy is not None:
            put_at(sent, "properties.scheduledEventsPolicy", show_policy(policy))

        outcome = await self.decide(
            lambda tx: vms.put(tx, machine_id(name, group), sent, context=self.context)
        )
        return outcome.view

    async def drop(self, *, force: bool = False) -> tuple[EventId, ...] | None:
        outcome = await self.decide(
            lambda tx: vms.drop(tx, machine_id(), force=force, context=self.context)
        )
        return None if outcome is None else outcome.event_ids

    async def put_availability_set(
        self, name: str = "db", group: str = "shop", policy: Policy | None = None
    ) -> AvailabilitySetView:
        shown = None if policy is None else show_policy(policy)
        sent: Json = {"location": "here", "properties": {"scheduledEventsPolicy": shown}}
        return await self.decide(
            lambda tx: availability_sets.put(
                tx, availability_id(name, group), sent, context=self.context
            )
        )

    async def names(self, name: str = "web") -> list[str]:
        view = await self.ask(lambda snapshot: inventory.scale_set(snapshot, set_id(name)))
        return [] if view is None else [machine.name for machine in view.vms]

    async def view(self, name: str = "web") -> ScaleSetView:
        return await self.decide(lambda tx: scale_sets.find(tx, set_id(name)))

    async def switch_on(self, name: str) -> None:
        """Let this VM read its document, so that what befalls its scope is announced."""
        found = await self.ask(lambda snapshot: inventory.by_name(snapshot, name))
        assert found is not None
        caller = Caller(name=found.name, scope_id=found.scope_id)
        await self.use_cases.activation.activate(caller, address="127.0.0.1")

    async def document(self, name: str) -> Document:
        found = await self.ask(lambda snapshot: inventory.by_name(snapshot, name))
        assert found is not None
        page = self.documents.board.page(found.scope_id)
        assert page is not None
        return page.document

    async def approve(self, *event_ids: EventId) -> None:
        for each in event_ids:
            await self.use_cases.approvals.approve_from_outside(each, by=OPERATOR)

    async def step(self, by: timedelta = SECOND) -> None:
        await self.clock.step(by)


@asynccontextmanager
async def estate() -> AsyncIterator[Estate]:
    """With an empty resource group `shop`."""
    clock = VirtualClock(NOON, speed=0)
    basis = a_basis(Rules(short_notice_allowed=True), address_range=NETWORK)
    documents = BoardDelivery()
    timings = {type_: Timing(impact=MINUTE, span=TEN) for type_ in EventType}
    async with (
        a_store(clock, basis.rules) as store,
        Application(store, clock, basis, documents, timings=timings) as application,
        clock,
    ):
        built = Estate(application.use_cases, documents, clock)
        await built.decide(lambda tx: groups.put(tx, SUBSCRIPTION, "shop", "{}", by=OPERATOR))
        yield built


WITH_NOTICE: Final = Model(terminate_notice=TEN)
SPOT: Final = Model(priority=Priority.SPOT)
