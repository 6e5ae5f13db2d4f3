"""Scale sets: their VMs, their numbers, their models, and what deleting takes."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from forewarned.core.ids import EventId
from forewarned.core.model import EventStatus, EventType, Policy
from forewarned.service.azure import instances, inventory, scale_sets
from forewarned.service.azure.group_index import BeingDeletedError, UnknownGroupError
from forewarned.service.azure.scale_sets import (
    SetNameTakenError,
    UnknownInstanceError,
    UnknownSetError,
)
from forewarned.service.fleet.declaration import FleetPlan, Model, ScaleSet
from tests.builders import MINUTE, OPERATOR
from tests.service.estate import (
    FIVE,
    SPOT,
    SUBSCRIPTION,
    TEN,
    WITH_NOTICE,
    Estate,
    estate,
    machine_id,
    set_id,
)


@pytest.fixture
async def here(anyio_backend: object) -> AsyncIterator[Estate]:
    async with estate() as built:
        yield built


async def delete(here: Estate, *instance_ids: str, force: bool = False) -> tuple[EventId, ...]:
    outcome = await here.decide(
        lambda tx: scale_sets.delete_instances(
            tx,
            scale_sets.find(tx, set_id()),
            instance_ids or None,
            force=force,
            context=here.context,
        )
    )
    return outcome.event_ids


async def upgrade(here: Estate, *instance_ids: str) -> tuple[EventId, ...]:
    outcome = await here.decide(
        lambda tx: scale_sets.upgrade(
            tx,
            scale_sets.find(tx, set_id()),
            instance_ids or None,
            context=here.context,
        )
    )
    return outcome.event_ids


async def test_a_set_makes_its_vms_in_one_scope_on_hosts_of_their_own_domains(
    here: Estate,
) -> None:
    """I9, I21."""
    outcome = await here.put_set(capacity=7)

    machines = outcome.view.vms
    assert outcome.created
    assert [m.name for m in machines] == [f"web_{n}" for n in range(7)]
    assert {m.scope_id for m in machines} == {"vmss/web/0"}
    assert len({m.binding.address for m in machines}) == 7
    by_host: dict[str, set[int]] = {}
    for m in machines:
        by_host.setdefault(m.resource.host, set()).add(m.resource.update_domain)
    assert all(len(domains) == 1 for domains in by_host.values())


async def test_a_set_of_more_than_a_hundred_has_several_placement_groups(here: Estate) -> None:
    outcome = await here.put_set(capacity=150)

    scopes = [m.scope_id for m in outcome.view.vms]
    assert (scopes.count("vmss/web/0"), scopes.count("vmss/web/1")) == (100, 50)  # type: ignore[arg-type]


async def test_instance_numbers_are_never_used_twice(here: Estate) -> None:
    await here.put_set(capacity=4)
    await delete(here, "1", "3")
    await here.step()

    await here.put_set(capacity=4)

    assert await here.names() == ["web_0", "web_2", "web_4", "web_5"]


async def test_numbers_of_a_fleet_files_set_are_not_used_twice_either(here: Estate) -> None:
    fleet = FleetPlan(
        resource_group="shop",
        subscription_id=SUBSCRIPTION,
        location="here",
        scale_sets=(ScaleSet(name="web", capacity=3),),
    )
    await here.use_cases.fleet.apply(fleet, by=OPERATOR)
    await delete(here, "2")
    await here.step()

    await here.put_set(capacity=3)

    assert await here.names() == ["web_0", "web_1", "web_3"]


async def test_vms_of_a_flexible_set_have_names_and_are_vms_of_their_own(here: Estate) -> None:
    outcome = await here.put_set(capacity=2, flexible=True)

    first = outcome.view.vms[0]
    found = await here.ask(lambda s: inventory.virtual_machine(s, machine_id(first.name.upper())))
    assert found is not None
    assert found.instance_id == first.name
    listed = await here.ask(lambda s: list(inventory.virtual_machines(s, SUBSCRIPTION, "SHOP")))
    assert [m.name for m in listed] == [m.name for m in outcome.view.vms]


async def test_instances_of_a_uniform_set_are_no_vms_of_their_own(here: Estate) -> None:
    await here.put_set(capacity=1)

    assert await here.ask(lambda s: inventory.virtual_machine(s, machine_id("web_0"))) is None


# --- scaling in, deleting ------------------------------------------------------------------------


async def test_scaling_in_takes_the_newest_of_the_fullest_zone(here: Estate) -> None:
    await here.put_set(capacity=6, zones=("1", "2"))
    await delete(here, "0")
    await here.step()

    await here.put_set(capacity=3, zones=("1", "2"))
    await here.step()

    # Zone 1 had 2 and 4, zone 2 had 1, 3 and 5: one of zone 2 goes first, then the zones in turn.
    assert await here.names() == ["web_1", "web_2", "web_3"]


async def test_deleting_two_gives_notice_to_all_and_neither_goes_alone(here: Estate) -> None:
    """I2, I9, I17."""
    await here.put_set(capacity=4, model=WITH_NOTICE)
    await here.switch_on("web_0")

    first, second = await delete(here, "1", "2")

    events = (await here.document("web_3")).events
    assert [(e.type, e.resources, e.not_before) for e in events] == [
        (EventType.TERMINATE, (name,), here.clock.now() + TEN) for name in ("web_1", "web_2")
    ]
    await here.approve(first)
    await here.step(MINUTE)
    assert [e.status for e in (await here.document("web_3")).events] == [EventStatus.SCHEDULED] * 2
    await here.approve(second)
    await here.step(TEN)
    assert await here.names() == ["web_0", "web_3"]


async def test_at_the_time_out_they_go_without_approval(here: Estate) -> None:
    """I20."""
    await here.put_set(capacity=2, model=WITH_NOTICE)
    await here.switch_on("web_0")
    await delete(here, "1")

    await here.step(TEN - MINUTE)
    assert await here.names() == ["web_0", "web_1"]
    await here.step(TEN + MINUTE)
    assert await here.names() == ["web_0"]


async def test_capacity_counts_those_who_stay_and_a_canceled_delete_counts_again(
    here: Estate,
) -> None:
    await here.put_set(capacity=2, model=WITH_NOTICE)
    await here.switch_on("web_0")
    [event] = await delete(here, "1")
    assert len((await here.view()).staying) == 1

    await here.use_cases.scheduler.cancel(event, reason="changed my mind", by=OPERATOR)

    assert len((await here.view()).staying) == 2


async def test_deleting_again_joins_the_delete_that_is_under_way(here: Estate) -> None:
    await here.put_set(capacity=2, model=WITH_NOTICE)
    await here.switch_on("web_0")

    assert await delete(here, "1") == await delete(here, "1", "1")


async def test_by_force_they_go_at_once_even_where_notice_was_given(here: Estate) -> None:
    await here.put_set(capacity=2, model=WITH_NOTICE)
    await here.switch_on("web_0")
    [given] = await delete(here, "1")

    [forced] = await delete(here, "1", force=True)

    assert forced != given
    await here.step()
    assert await here.names() == ["web_0"]


async def test_without_notice_on_the_model_they_go_at_once_and_nobody_reads_of_it(
    here: Estate,
) -> None:
    await here.put_set(capacity=2)
    await here.switch_on("web_0")
    before = await here.document("web_0")

    await delete(here, "1")
    await here.step()

    assert await here.names() == ["web_0"]
    assert await here.document("web_0") == before


async def test_spot_instances_get_no_notice(here: Estate) -> None:
    outcome = await here.put_set(capacity=1, model=SPOT)
    [machine] = outcome.view.vms
    told = replace(SPOT, terminate_notice=TEN)
    await here.decide(lambda tx: instances.bring_to(tx, machine, told, by=OPERATOR))
    await here.switch_on("web_0")

    await delete(here, "0")
    await here.step()

    assert await here.names() == []


async def test_one_unknown_instance_and_nothing_is_deleted(here: Estate) -> None:
    await here.put_set(capacity=2)

    with pytest.raises(UnknownInstanceError):
        await delete(here, "0", "9")
    await here.step()

    assert await here.names() == ["web_0", "web_1"]


# --- models --------------------------------------------------------------------------------------


async def test_a_new_model_touches_no_vm_until_it_is_brought_to_it(here: Estate) -> None:
    await here.put_set(capacity=3, model=Model(terminate_notice=FIVE))
    await here.switch_on("web_0")

    await here.put_set(model=WITH_NOTICE)
    await upgrade(here, "1")

    view = await here.view()
    assert [view.is_latest(m) for m in view.vms] == [False, True, False]
    await delete(here, "0", "1")
    events = (await here.document("web_2")).events
    assert [e.not_before for e in events] == [here.clock.now() + FIVE, here.clock.now() + TEN]


async def test_new_instances_are_on_the_new_model(here: Estate) -> None:
    await here.put_set(capacity=1)

    await here.put_set(capacity=2, model=WITH_NOTICE)

    old, new = (await here.view()).vms
    assert (old.resource.terminate_notice, new.resource.terminate_notice) == (None, TEN)
    assert (await here.view()).is_latest(new)


async def test_with_an_automatic_policy_vms_follow_at_once(here: Estate) -> None:
    await here.put_set(capacity=2)

    await here.put_set(model=WITH_NOTICE, automatic=True)

    view = await here.view()
    assert all(view.is_latest(m) for m in view.vms)
    assert {m.resource.terminate_notice for m in view.vms} == {TEN}


@pytest.mark.parametrize(("notice", "announced"), [(15 * MINUTE, True), (None, False)])
async def test_a_new_image_is_announced_where_the_instances_model_says_so(
    here: Estate, notice: None, announced: bool
) -> None:
    model = Model(image_notice=notice)
    await here.put_set(capacity=2, model=model)
    await here.switch_on("web_0")
    await here.put_set(image="another")

    await upgrade(here, "1")

    events = (await here.document("web_0")).events
    assert [(e.type, e.resources) for e in events] == (
        [(EventType.REBOOT, ("web_1",))] if announced else []
    )


async def test_a_sets_policy_is_that_of_its_scopes(here: Estate) -> None:
    policy = Policy(approves_user_reboot=True)
    await here.put_set(capacity=1)

    outcome = await here.put_set(policy=policy)

    assert outcome.view.policy == policy


# --- sets ----------------------------------------------------------------------------------------


async def test_a_set_is_gone_when_its_last_vm_is_and_its_name_is_free_then(here: Estate) -> None:
    await here.put_set(capacity=1, model=WITH_NOTICE)
    await here.switch_on("web_0")

    await here.decide(lambda tx: scale_sets.drop(tx, set_id(), force=False, context=here.context))

    assert (await here.view()).is_going
    with pytest.raises(BeingDeletedError):
        await here.put_set(capacity=2)
    await here.step(TEN)
    await here.step(TEN)
    with pytest.raises(UnknownSetError):
        await here.view()
    await here.put_set(capacity=1)
    assert await here.names() == ["web_0"]


async def test_no_two_sets_have_the_same_name(here: Estate) -> None:
    await here.put_set(capacity=0)
    fleet = FleetPlan(resource_group="other", subscription_id=SUBSCRIPTION, location="here")
    await here.use_cases.fleet.apply(
        replace(fleet, scale_sets=(ScaleSet(name="api", capacity=1),)), by=OPERATOR
    )

    for name, group in (("WEB", "other"), ("Api", "shop")):
        with pytest.raises(SetNameTakenError):
            await here.put_set(name, capacity=1, group=group)


async def test_a_set_needs_a_resource_group(here: Estate) -> None:
    with pytest.raises(UnknownGroupError):
        await here.put_set(group="nowhere")


async def test_sets_are_listed_whoever_declared_them(here: Estate) -> None:
    await here.put_set("web", capacity=0)
    fleet = FleetPlan(
        resource_group="shop",
        subscription_id=SUBSCRIPTION,
        scale_sets=(ScaleSet(name="api", capacity=1),),
    )
    await here.use_cases.fleet.apply(fleet, by=OPERATOR)

    views = await here.ask(lambda s: list(inventory.scale_sets(s, SUBSCRIPTION)))

    assert [(v.id.name, v.declaration is None) for v in views] == [("api", True), ("web", False)]
