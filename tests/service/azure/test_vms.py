"""VMs that are resources of their own, availability sets, resource groups, and what is done to them."""

from collections.abc import AsyncIterator

import pytest

from forewarned.core.errors import NotSpotError
from forewarned.core.ids import EventId, HostName
from forewarned.core.model import Event, EventSource, EventStatus, EventType, Policy, ResourceState
from forewarned.service.azure import groups, inventory, operations, vms
from forewarned.service.azure.actions import Action, NothingToMaintainError, NotRunningError
from forewarned.service.azure.inventory import VmView
from forewarned.service.azure.models.documents import PropertyChangeError
from forewarned.service.azure.operations import OperationStatus, Progress
from forewarned.service.azure.vms import UnknownVmError
from forewarned.service.drains.model import Drain, DrainOrder, DrainState
from forewarned.service.errors import NameTakenError
from forewarned.service.events.schedule import WorkOrder
from forewarned.service.fleet.declaration import Model
from forewarned.service.fleet.placement import AddressesExhaustedError
from forewarned.service.ports import Transaction
from tests.builders import MINUTE, NOON, OPERATOR, SECOND
from tests.service.estate import (
    SPOT,
    SUBSCRIPTION,
    TEN,
    WITH_NOTICE,
    Estate,
    estate,
    machine_id,
)

QUARTER = 15 * MINUTE


@pytest.fixture
async def here(anyio_backend: object) -> AsyncIterator[Estate]:
    async with estate() as built:
        yield built


async def operate(here: Estate, action: Action, name: str = "vm1") -> tuple[EventId, ...]:
    outcome = await here.decide(
        lambda tx: vms.operate(tx, vms.find(tx, machine_id(name)), action, context=here.context)
    )
    return outcome.event_ids


async def events(here: Estate, name: str = "vm1") -> tuple[Event, ...]:
    return (await here.document(name)).events


async def found(here: Estate, name: str = "vm1") -> VmView | None:
    return await here.ask(lambda s: inventory.virtual_machine(s, machine_id(name)))


async def state(here: Estate, name: str = "vm1") -> ResourceState:
    machine = await found(here, name)
    assert machine is not None
    return machine.resource.state


# --- what people do to VMs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "model", "expected"),
    [
        (Action.RESTART, Model(), (EventType.REBOOT, EventSource.USER, QUARTER)),
        (Action.REDEPLOY, Model(), (EventType.REDEPLOY, EventSource.USER, TEN)),
        (Action.EVICT, SPOT, (EventType.PREEMPT, EventSource.PLATFORM, 30 * SECOND)),
        (Action.DELETE, WITH_NOTICE, (EventType.TERMINATE, EventSource.USER, TEN)),
        (
            Action.REIMAGE,
            Model(image_notice=QUARTER),
            (EventType.REBOOT, EventSource.USER, QUARTER),
        ),
    ],
)
async def test_each_action_gives_its_own_notice(
    here: Estate, action: Action, model: Model, expected: tuple[object, ...]
) -> None:
    """I2."""
    await here.put_machine(model=model)
    await here.switch_on("vm1")
    now = here.clock.now()

    [event_id] = await operate(here, action)

    [event] = await events(here)
    assert event.id == event_id
    assert event.not_before is not None
    assert (event.type, event.source, event.not_before - now) == expected


@pytest.mark.parametrize("action", [Action.RESTART, Action.REDEPLOY])
async def test_asking_twice_does_not_act_twice(here: Estate, action: Action) -> None:
    """I12: clients send a request again when they hear nothing."""
    await here.put_machine()
    await here.switch_on("vm1")

    first = await operate(here, action)
    assert await operate(here, action) == first
    await here.approve(*first)
    assert await operate(here, action) == first

    assert len(await events(here)) == 1


async def test_a_restart_does_not_join_what_the_platform_does(here: Estate) -> None:
    machine = await here.put_machine()
    await here.switch_on("vm1")
    order = WorkOrder(type=EventType.REBOOT)
    host = HostName(machine.resource.host)
    await here.use_cases.scheduler.maintain_host(host, order, by=OPERATOR)

    await operate(here, Action.RESTART)

    assert [e.source for e in await events(here)] == [EventSource.PLATFORM, EventSource.USER]


@pytest.mark.parametrize(
    ("action", "after"),
    [
        (Action.POWER_OFF, ResourceState.STOPPED),
        (Action.DEALLOCATE, ResourceState.DEALLOCATED),
    ],
)
async def test_switching_off_and_on_needs_no_event(
    here: Estate, action: Action, after: ResourceState
) -> None:
    await here.put_machine()
    await here.switch_on("vm1")

    assert await operate(here, action) == ()
    assert await state(here) is after
    assert await events(here) == ()
    await operate(here, Action.START)
    assert await state(here) is ResourceState.RUNNING


@pytest.mark.parametrize("action", [Action.RESTART, Action.REDEPLOY, Action.EVICT])
async def test_what_is_off_is_not_restarted(here: Estate, action: Action) -> None:
    await here.put_machine(model=SPOT)
    await operate(here, Action.DEALLOCATE)

    with pytest.raises(NotRunningError):
        await operate(here, action)


async def test_only_spot_vms_are_evicted(here: Estate) -> None:
    await here.put_machine()

    with pytest.raises(NotSpotError):
        await operate(here, Action.EVICT)


async def test_a_reimage_without_notice_is_over_at_once(here: Estate) -> None:
    await here.put_machine()
    await here.switch_on("vm1")

    await operate(here, Action.REIMAGE)
    await here.step()

    machine = await found(here)
    assert machine is not None
    assert machine.events == ()
    assert await events(here) == ()


async def test_performing_maintenance_approves_what_the_platform_waits_with(here: Estate) -> None:
    machine = await here.put_machine()
    await here.switch_on("vm1")
    with pytest.raises(NothingToMaintainError):
        await operate(here, Action.MAINTAIN)
    host = HostName(machine.resource.host)
    order = WorkOrder(type=EventType.FREEZE)
    await here.use_cases.scheduler.maintain_host(host, order, by=OPERATOR)

    [waiting] = await operate(here, Action.MAINTAIN)

    [event] = await events(here)
    assert (event.id, event.status) == (waiting, EventStatus.STARTED)


# --- operations ----------------------------------------------------------------------------------


async def progress(here: Estate, action: Action) -> tuple[str, Progress]:
    def work(tx: Transaction) -> str:
        outcome = vms.operate(tx, vms.find(tx, machine_id()), action, context=here.context)
        path = machine_id().path
        return operations.open_(tx, path, action, outcome.event_ids, context=here.context).id

    operation_id = await here.decide(work)
    return operation_id, await look(here, operation_id)


async def look(here: Estate, operation_id: str) -> Progress:
    seen = await here.ask(lambda s: operations.progress(s, operation_id))
    assert seen is not None
    return seen


async def test_an_operation_is_over_when_its_event_is(here: Estate) -> None:
    await here.put_machine()
    await here.switch_on("vm1")

    operation_id, seen = await progress(here, Action.RESTART)

    assert seen.status is OperationStatus.IN_PROGRESS
    await here.step(QUARTER)
    assert (await look(here, operation_id)).status is OperationStatus.IN_PROGRESS
    await here.step(TEN)
    seen = await look(here, operation_id)
    assert seen.status is OperationStatus.SUCCEEDED
    assert seen.ended_at == here.clock.now()


async def test_on_an_inactive_scope_it_is_over_at_once(here: Estate) -> None:
    await here.put_machine()

    operation_id, _ = await progress(here, Action.RESTART)
    await here.step()

    assert (await look(here, operation_id)).status is OperationStatus.SUCCEEDED


async def test_what_needs_no_event_is_over_at_once(here: Estate) -> None:
    await here.put_machine()

    _, seen = await progress(here, Action.DEALLOCATE)

    assert (seen.status, seen.ended_at) == (OperationStatus.SUCCEEDED, here.clock.now())


async def test_an_operation_is_canceled_with_its_event_and_says_why(here: Estate) -> None:
    await here.put_machine()
    await here.switch_on("vm1")
    operation_id, seen = await progress(here, Action.RESTART)

    [event_id] = seen.record.event_ids
    await here.use_cases.scheduler.cancel(event_id, reason="not today", by=OPERATOR)

    seen = await look(here, operation_id)
    assert (seen.status, seen.reason) == (OperationStatus.CANCELED, "not today")


async def test_an_unknown_operation_has_no_progress(here: Estate) -> None:
    assert await here.ask(lambda s: operations.progress(s, "none")) is None


# --- VMs -----------------------------------------------------------------------------------------


async def test_a_vm_is_a_scope_of_its_own_with_its_own_policy(here: Estate) -> None:
    await here.put_machine(policy=Policy(approves_user_reboot=True))
    await here.switch_on("vm1")

    await operate(here, Action.RESTART)

    assert [e.status for e in await events(here)] == [EventStatus.STARTED]


async def test_a_vm_takes_another_model_and_keeps_its_place(here: Estate) -> None:
    before = await here.put_machine()

    after = await here.put_machine(model=Model(size="Standard_D4s_v5", terminate_notice=TEN))

    assert (after.profile.size, after.resource.terminate_notice) == ("Standard_D4s_v5", TEN)
    assert after.binding.address == before.binding.address
    assert after.resource.host == before.resource.host
    assert after.profile.vm_id == before.profile.vm_id


async def test_a_new_vm_is_not_put_on_a_host_that_is_drained(here: Estate) -> None:
    first = await here.put_machine()
    drain = Drain(
        host=first.resource.host,
        order=DrainOrder(),
        by="operator",
        began_at=NOON,
        changed_at=NOON,
        state=DrainState.EMPTY,
    )
    await here.decide(lambda tx: tx.put_drain(drain))

    second = await here.put_machine("vm2")

    assert second.resource.host != first.resource.host


async def test_what_was_settled_when_a_vm_was_made_stays(here: Estate) -> None:
    await here.put_availability_set()
    await here.put_set(capacity=0, flexible=True)
    await here.put_machine()

    for name, change in (
        ("availabilitySet", here.put_machine(availability_set="db")),
        ("virtualMachineScaleSet", here.put_machine(scale_set="web")),
        ("location", here.put_machine(location="elsewhere")),
        ("priority", here.put_machine(model=SPOT)),
    ):
        with pytest.raises(PropertyChangeError, match=name):
            await change


async def test_a_name_is_used_once_in_a_fleet(here: Estate) -> None:
    await here.decide(lambda tx: groups.put(tx, SUBSCRIPTION, "other", "{}", by=OPERATOR))
    await here.put_machine()

    with pytest.raises(NameTakenError):
        await here.put_machine("VM1", group="other")


async def test_a_vm_is_deleted_with_notice_only_where_its_model_has_one(here: Estate) -> None:
    await here.put_machine(model=WITH_NOTICE)
    await here.switch_on("vm1")

    assert await here.drop() is not None
    assert [e.type for e in await events(here)] == [EventType.TERMINATE]
    await here.drop(force=True)
    await here.step()
    assert await found(here) is None
    assert await here.drop() is None
    with pytest.raises(UnknownVmError):
        await operate(here, Action.RESTART)


async def test_addresses_rest_before_they_are_given_again_and_run_out(here: Estate) -> None:
    first = await here.put_machine()
    await here.drop()
    await here.step()

    again = await here.put_machine()

    assert again.binding.address != first.binding.address
    with pytest.raises(AddressesExhaustedError):
        await here.put_set(capacity=254)
    assert await here.names() == []
