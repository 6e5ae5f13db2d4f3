"""Availability sets, resource groups, and what is said of them in the history."""

from collections.abc import AsyncIterator

import pytest

from forewarned.core.model import Policy
from forewarned.service.azure import availability_sets, group_index, groups, inventory
from forewarned.service.azure import vms as machines
from forewarned.service.azure.availability_sets import (
    AvailabilitySetNameTakenError,
    SetInUseError,
    UnknownAvailabilitySetError,
)
from forewarned.service.azure.group_index import BeingDeletedError, UnknownGroupError
from forewarned.service.azure.vms import NotFlexibleError, OwnPolicyError
from forewarned.service.listings import HistoryFilter
from tests.builders import OPERATOR
from tests.service.estate import (
    SUBSCRIPTION,
    TEN,
    WITH_NOTICE,
    Estate,
    availability_id,
    estate,
    machine_id,
)


@pytest.fixture
async def here(anyio_backend: object) -> AsyncIterator[Estate]:
    async with estate() as built:
        yield built


# --- availability sets ---------------------------------------------------------------------------


async def test_vms_of_an_availability_set_share_a_scope_over_all_its_domains(
    here: Estate,
) -> None:
    await here.put_availability_set()

    vms = [await here.put_machine(f"db-{n}", availability_set="DB") for n in range(6)]

    assert {vm.scope_id for vm in vms} == {"avset/db"}
    assert [vm.resource.update_domain for vm in vms] == [0, 1, 2, 3, 4, 0]
    assert [vm.resource.fault_domain for vm in vms] == [0, 1, 0, 1, 0, 1]
    [view] = await here.ask(lambda s: list(inventory.availability_sets(s, SUBSCRIPTION, "shop")))
    assert [m.name for m in view.vms] == [vm.name for vm in vms]


async def test_the_policy_of_a_set_is_the_sets(here: Estate) -> None:
    policy = Policy(approves_user_redeploy=True)
    await here.put_availability_set(policy=policy)
    vm = await here.put_machine("db-0", availability_set="db")

    with pytest.raises(OwnPolicyError):
        await here.put_machine("db-1", availability_set="db", policy=policy)

    scope = await here.ask(lambda s: s.load(vm.scope_id))
    assert scope.policy == policy
    assert (await here.put_availability_set()).policy == Policy()


async def test_a_set_goes_when_it_is_empty(here: Estate) -> None:
    await here.put_availability_set()
    await here.put_machine(availability_set="db")

    with pytest.raises(SetInUseError):
        await here.decide(lambda tx: availability_sets.drop(tx, availability_id(), by=OPERATOR))
    await here.drop()
    await here.step()
    for was_there in (True, False):
        assert was_there == await here.decide(
            lambda tx: availability_sets.drop(tx, availability_id(), by=OPERATOR)
        )


async def test_a_vm_joins_a_set_that_is_there(here: Estate) -> None:
    with pytest.raises(UnknownAvailabilitySetError):
        await here.put_machine(availability_set="db")


async def test_a_vm_joins_a_flexible_set(here: Estate) -> None:
    await here.put_set(capacity=1, flexible=True)

    await here.put_machine(scale_set="web")

    view = await here.view()
    assert [m.name for m in view.vms][1:] == ["vm1"]


async def test_no_two_availability_sets_have_the_same_name(here: Estate) -> None:
    """Or their VMs would read each other's documents (I9)."""
    await here.decide(lambda tx: groups.put(tx, SUBSCRIPTION, "other", "{}", by=OPERATOR))
    await here.put_availability_set()

    with pytest.raises(AvailabilitySetNameTakenError):
        await here.put_availability_set(group="other")

    await here.decide(lambda tx: availability_sets.drop(tx, availability_id(), by=OPERATOR))
    await here.put_availability_set(group="other")


async def test_no_vm_can_be_put_into_a_uniform_set(here: Estate) -> None:
    await here.put_set(capacity=1)

    with pytest.raises(NotFlexibleError):
        await here.put_machine(scale_set="web")

    assert await here.names() == ["web_0"]


async def test_a_vm_that_is_being_deleted_can_not_be_changed(here: Estate) -> None:
    await here.put_machine(model=WITH_NOTICE)
    await here.switch_on("vm1")
    await here.decide(lambda tx: machines.drop(tx, machine_id(), force=False, context=here.context))

    with pytest.raises(BeingDeletedError):
        await here.put_machine()


# --- resource groups -----------------------------------------------------------------------------


async def test_a_group_goes_with_all_that_is_in_it(here: Estate) -> None:
    await here.put_machine(model=WITH_NOTICE)
    await here.put_set(capacity=2)
    await here.switch_on("vm1")

    await here.decide(lambda tx: groups.drop(tx, SUBSCRIPTION, "SHOP", context=here.context))

    with pytest.raises(BeingDeletedError):
        await here.put_machine("vm2")
    await here.step(TEN)
    await here.step(TEN)
    assert await here.ask(lambda s: group_index.every(s, SUBSCRIPTION)) == []
    with pytest.raises(UnknownGroupError):
        await here.put_machine()
    await here.decide(lambda tx: groups.put(tx, SUBSCRIPTION, "Shop", "{}", by=OPERATOR))
    assert await here.ask(lambda s: list(s.declarations("/subscriptions/"))) != []
    [view] = await here.ask(lambda s: group_index.every(s, SUBSCRIPTION))
    assert view.declaration is not None
    assert not view.declaration.is_going


async def test_an_availability_set_goes_with_its_group_and_leaves_its_name(here: Estate) -> None:
    await here.put_machine(model=WITH_NOTICE)
    await here.put_availability_set()

    await here.decide(lambda tx: groups.drop(tx, SUBSCRIPTION, "shop", context=here.context))
    await here.step(TEN)

    assert await here.ask(lambda s: list(inventory.availability_sets(s, SUBSCRIPTION))) == []
    assert await here.ask(lambda s: inventory.availability_set(s, availability_id())) is None
    await here.decide(lambda tx: groups.put(tx, SUBSCRIPTION, "other", "{}", by=OPERATOR))
    assert (await here.put_availability_set(group="other")).id.group == "other"


async def test_what_is_declared_of_a_vm_goes_with_the_vm(here: Estate) -> None:
    await here.put_machine()
    assert await here.ask(lambda s: s.declaration(machine_id().path)) is not None

    await here.drop()
    await here.step(TEN)

    assert await here.ask(lambda s: s.declaration(machine_id().path)) is None


async def test_a_declared_group_is_found_without_a_look_at_vms(here: Estate) -> None:
    await here.put_machine()
    found = await here.ask(lambda s: group_index.find(s, SUBSCRIPTION, "SHOP"))
    [listed] = await here.ask(lambda s: group_index.every(s, SUBSCRIPTION))

    assert found is not None
    assert (found.name, found.declaration) == (listed.name, listed.declaration)
    assert await here.ask(lambda s: group_index.find(s, SUBSCRIPTION, "none")) is None


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
    await here.put_availability_set()
    await here.decide(lambda tx: availability_sets.drop(tx, availability_id(), by=OPERATOR))

    rows = await here.ask(lambda s: s.history(HistoryFilter(limit=10)))

    assert [(row.action, row.cause.rpartition("/")[2]) for row in reversed(rows)] == [
        ("declared", "shop"),
        ("declared", "web"),
        ("declared", "db"),
        ("withdrawn", "db"),
    ]
