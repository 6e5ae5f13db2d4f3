"""VMs that are resources of their own, availability sets, resource groups, and what is done to them."""

from collections.abc import AsyncIterator

import pytest

from notbefore.core.errors import NotSpotError
from notbefore.core.ids import EventId, HostName
from notbefore.core.model import (
    Event,
    EventSource,
    EventStatus,
    EventType,
    Policy,
    ResourceState,
)
from notbefore.service import groups, inventory, machines, operations
from notbefore.service.errors import NameTakenError
from notbefore.service.fleet_kinds import Model
from notbefore.service.fleet_plan import AddressesExhaustedError
from notbefore.service.inventory import (
    AvailabilitySetView,
    BeingDeletedError,
    Machine,
    UnknownGroupError,
)
from notbefore.service.machines import (
    AvailabilitySetNameTakenError,
    NotFlexibleError,
    OwnPolicyError,
    PropertyChangeError,
    SetInUseError,
    UnknownAvailabilitySetError,
    UnknownMachineError,
    WantedAvailabilitySet,
)
from notbefore.service.operating import Action, NothingToMaintainError, NotRunningError
from notbefore.service.operations import OperationStatus, Progress
from notbefore.service.ports import HistoryFilter, Transaction
from notbefore.service.scheduling import WorkRequest
from tests.builders import MINUTE, OPERATOR, SECOND
from tests.service.estate import (
    SPOT,
    SUBSCRIPTION,
    TEN,
    WITH_NOTICE,
    Estate,
    availability_id,
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
        lambda tx: machines.operate(tx, machine_id(name), action, means=here.means, by=OPERATOR)
    )
    return outcome.event_ids


async def events(here: Estate, name: str = "vm1") -> tuple[Event, ...]:
    return (await here.document(name)).events


async def found(here: Estate, name: str = "vm1") -> Machine | None:
    return await here.ask(lambda s: inventory.virtual_machine(s, machine_id(name)))


async def state(here: Estate, name: str = "vm1") -> ResourceState:
    machine = await found(here, name)
    assert machine is not None
    return machine.resource.state


async def drop(here: Estate, *, force: bool = False) -> tuple[EventId, ...] | None:
    outcome = await here.decide(
        lambda tx: machines.drop(tx, machine_id(), force=force, means=here.means, by=OPERATOR)
    )
    return None if outcome is None else outcome.event_ids


async def put_availability_set(
    here: Estate, name: str = "db", group: str = "shop", policy: Policy | None = None
) -> AvailabilitySetView:
    wanted = WantedAvailabilitySet(document="{}", policy=policy or Policy())
    view, _ = await here.decide(
        lambda tx: machines.put_availability_set(
            tx, availability_id(name, group), lambda _: wanted, by=OPERATOR
        )
    )
    return view


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
    request = WorkRequest(type=EventType.REBOOT)
    host = HostName(machine.resource.host)
    await here.application.scheduling.maintain_host(host, request, by=OPERATOR)

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
    request = WorkRequest(type=EventType.FREEZE)
    await here.application.scheduling.maintain_host(host, request, by=OPERATOR)

    [waiting] = await operate(here, Action.MAINTAIN)

    [event] = await events(here)
    assert (event.id, event.status) == (waiting, EventStatus.STARTED)


# --- operations ----------------------------------------------------------------------------------


async def progress(here: Estate, action: Action) -> tuple[str, Progress]:
    def work(tx: Transaction) -> str:
        outcome = machines.operate(tx, machine_id(), action, means=here.means, by=OPERATOR)
        path = machine_id().path
        return operations.open_(tx, path, action, outcome.event_ids, means=here.means).id

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
    await here.application.scheduling.cancel(event_id, reason="not today", by=OPERATOR)

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


async def test_what_was_settled_when_a_vm_was_made_stays(here: Estate) -> None:
    await put_availability_set(here)
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

    assert await drop(here) is not None
    assert [e.type for e in await events(here)] == [EventType.TERMINATE]
    await drop(here, force=True)
    await here.step()
    assert await found(here) is None
    assert await drop(here) is None
    with pytest.raises(UnknownMachineError):
        await operate(here, Action.RESTART)


async def test_addresses_rest_before_they_are_given_again_and_run_out(here: Estate) -> None:
    first = await here.put_machine()
    await drop(here)
    await here.step()

    again = await here.put_machine()

    assert again.binding.address != first.binding.address
    with pytest.raises(AddressesExhaustedError):
        await here.put_set(capacity=254)
    assert await here.names() == []


# --- availability sets ---------------------------------------------------------------------------


async def test_vms_of_an_availability_set_share_a_scope_over_all_its_domains(
    here: Estate,
) -> None:
    await put_availability_set(here)

    vms = [await here.put_machine(f"db-{n}", availability_set="DB") for n in range(6)]

    assert {vm.scope_id for vm in vms} == {"avset/db"}
    assert [vm.resource.update_domain for vm in vms] == [0, 1, 2, 3, 4, 0]
    assert [vm.resource.fault_domain for vm in vms] == [0, 1, 0, 1, 0, 1]
    [view] = await here.ask(lambda s: list(inventory.availability_sets(s, SUBSCRIPTION, "shop")))
    assert [m.name for m in view.machines] == [vm.name for vm in vms]


async def test_the_policy_of_a_set_is_the_sets(here: Estate) -> None:
    policy = Policy(approves_user_redeploy=True)
    await put_availability_set(here, policy=policy)
    vm = await here.put_machine("db-0", availability_set="db")

    with pytest.raises(OwnPolicyError):
        await here.put_machine("db-1", availability_set="db", policy=policy)

    scope = await here.ask(lambda s: s.load(vm.scope_id))
    assert scope.policy == policy
    assert (await put_availability_set(here)).policy == Policy()


async def test_a_set_goes_when_it_is_empty(here: Estate) -> None:
    await put_availability_set(here)
    await here.put_machine(availability_set="db")

    with pytest.raises(SetInUseError):
        await here.decide(
            lambda tx: machines.drop_availability_set(tx, availability_id(), by=OPERATOR)
        )
    await drop(here)
    await here.step()
    for was_there in (True, False):
        assert was_there == await here.decide(
            lambda tx: machines.drop_availability_set(tx, availability_id(), by=OPERATOR)
        )


async def test_a_vm_joins_a_set_that_is_there(here: Estate) -> None:
    with pytest.raises(UnknownAvailabilitySetError):
        await here.put_machine(availability_set="db")


async def test_a_vm_joins_a_flexible_set(here: Estate) -> None:
    await here.put_set(capacity=1, flexible=True)

    await here.put_machine(scale_set="web")

    view = await here.view()
    assert [m.name for m in view.machines][1:] == ["vm1"]


async def test_no_two_availability_sets_have_the_same_name(here: Estate) -> None:
    """Or their VMs would read each other's documents (I9)."""
    await here.decide(lambda tx: groups.put(tx, SUBSCRIPTION, "other", "{}", by=OPERATOR))
    await put_availability_set(here)

    with pytest.raises(AvailabilitySetNameTakenError):
        await put_availability_set(here, group="other")

    await here.decide(lambda tx: machines.drop_availability_set(tx, availability_id(), by=OPERATOR))
    await put_availability_set(here, group="other")


async def test_no_vm_can_be_put_into_a_uniform_set(here: Estate) -> None:
    await here.put_set(capacity=1)

    with pytest.raises(NotFlexibleError):
        await here.put_machine(scale_set="web")

    assert await here.names() == ["web_0"]


async def test_a_vm_that_is_being_deleted_can_not_be_changed(here: Estate) -> None:
    await here.put_machine(model=WITH_NOTICE)
    await here.switch_on("vm1")
    await here.decide(
        lambda tx: machines.drop(tx, machine_id(), force=False, means=here.means, by=OPERATOR)
    )

    with pytest.raises(BeingDeletedError):
        await here.put_machine()


# --- resource groups -----------------------------------------------------------------------------


async def test_a_group_goes_with_all_that_is_in_it(here: Estate) -> None:
    await here.put_machine(model=WITH_NOTICE)
    await here.put_set(capacity=2)
    await here.switch_on("vm1")

    await here.decide(
        lambda tx: groups.drop(tx, SUBSCRIPTION, "SHOP", means=here.means, by=OPERATOR)
    )

    with pytest.raises(BeingDeletedError):
        await here.put_machine("vm2")
    await here.step(TEN)
    await here.step(TEN)
    assert await here.ask(lambda s: inventory.groups(s, SUBSCRIPTION)) == []
    with pytest.raises(UnknownGroupError):
        await here.put_machine()
    await here.decide(lambda tx: groups.put(tx, SUBSCRIPTION, "Shop", "{}", by=OPERATOR))
    assert await here.ask(lambda s: list(s.declarations("/subscriptions/"))) != []
    [view] = await here.ask(lambda s: inventory.groups(s, SUBSCRIPTION))
    assert view.declaration is not None
    assert not view.declaration.is_going


async def test_what_no_vm_is_part_of_is_kept_in_a_group_that_is_there(here: Estate) -> None:
    network = availability_id("net")
    declared = await here.decide(lambda tx: groups.declare(tx, network, '{"a": 1}'))
    changed = await here.decide(lambda tx: groups.declare(tx, network, '{"a": 2}'))

    assert changed.created_at == declared.created_at
    assert changed.document == '{"a": 2}'
    with pytest.raises(UnknownGroupError):
        await here.decide(lambda tx: groups.declare(tx, availability_id("n", "none"), "{}"))


async def test_what_is_declared_and_withdrawn_is_in_the_history(here: Estate) -> None:
    """I29."""
    await here.put_set(capacity=0)
    await put_availability_set(here)
    await here.decide(lambda tx: machines.drop_availability_set(tx, availability_id(), by=OPERATOR))

    rows = await here.ask(lambda s: s.history(HistoryFilter(limit=10)))

    assert [(row.action, row.cause.rpartition("/")[2]) for row in reversed(rows)] == [
        ("declared", "shop"),
        ("declared", "web"),
        ("declared", "db"),
        ("withdrawn", "db"),
    ]
