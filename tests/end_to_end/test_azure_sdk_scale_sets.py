"""Scale sets and their instances, through azure-mgmt-compute."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.compute import models

from tests.end_to_end.azure_sdk import GROUP, Sdk, sdk, terminate_profile


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    with sdk(tmp_path_factory.mktemp("sdk")) as made:
        yield made


def test_what_was_put_is_what_is_got(azure: Sdk) -> None:
    policy = {"userInitiatedReboot": {"automaticallyApprove": True}}
    profile = terminate_profile(7) | {
        "osProfile": {"computerNamePrefix": "put", "adminUsername": "someone"},
        "storageProfile": {"imageReference": {"publisher": "P", "offer": "O", "sku": "S"}},
    }
    azure.make_set("put", 2, virtualMachineProfile=profile, scheduledEventsPolicy=policy)

    got = azure.compute.virtual_machine_scale_sets.get(GROUP, "put")

    shown = got.as_dict()["properties"]
    assert (got.name, got.location) == ("put", "local")
    assert got.sku is not None
    assert (got.sku.name, got.sku.capacity) == ("Standard_D2s_v5", 2)
    assert shown["provisioningState"] == "Succeeded"
    assert shown["scheduledEventsPolicy"] == policy
    # What was not said is filled in, as Azure does; what was said stays.
    for key, value in profile.items():
        assert shown["virtualMachineProfile"][key].items() >= value.items()


def test_a_patch_changes_what_it_names_and_instances_follow_when_told_to(azure: Sdk) -> None:
    sets = azure.compute.virtual_machine_scale_sets
    azure.make_set("patched", 2, virtualMachineProfile=terminate_profile(5))

    sets.begin_update(
        GROUP, "patched", changed(virtualMachineProfile=terminate_profile(9))
    ).result()
    before = latest(azure, "patched")
    sets.begin_update_instances(GROUP, "patched", ids("1")).result()
    after = latest(azure, "patched")

    profile = sets.get(GROUP, "patched").as_dict()["properties"]["virtualMachineProfile"]
    assert profile["scheduledEventsProfile"] == terminate_profile(9)["scheduledEventsProfile"]
    assert before == {"0": False, "1": False}
    assert after == {"0": False, "1": True}


def test_capacity_is_scaled_by_a_patch(azure: Sdk) -> None:
    sets = azure.compute.virtual_machine_scale_sets
    azure.make_set("scaled", 1)
    sku = models.Sku({"name": "Standard_D2s_v5", "capacity": 3})

    sets.begin_update(GROUP, "scaled", models.VirtualMachineScaleSetUpdate(sku=sku)).result()
    sets.begin_delete_instances(GROUP, "scaled", ids("1")).result()

    got = sets.get(GROUP, "scaled")
    assert got.sku is not None
    assert got.sku.capacity == 2
    assert set(latest(azure, "scaled")) == {"0", "2"}


def test_sets_are_listed_by_group_and_over_all(azure: Sdk) -> None:
    azure.make_set("listed", 0)

    in_group = {each.name for each in azure.compute.virtual_machine_scale_sets.list(GROUP)}
    everywhere = {each.name for each in azure.compute.virtual_machine_scale_sets.list_all()}

    assert "listed" in in_group
    # The fleet the server came with is there as well, without having been declared.
    assert everywhere >= in_group | {"api", "job", "spot"}


def test_a_set_tells_how_its_instances_are(azure: Sdk) -> None:
    azure.make_set("viewed", 2)

    whole = azure.compute.virtual_machine_scale_sets.get_instance_view(GROUP, "viewed")
    one = azure.compute.virtual_machine_scale_set_vms.get_instance_view(GROUP, "viewed", "1")

    assert whole.virtual_machine is not None
    counted = {each.code: each.count for each in whole.virtual_machine.statuses_summary or []}
    assert counted["ProvisioningState/succeeded"] == 2
    assert "PowerState/running" in {each.code for each in one.statuses or []}


def test_operations_on_a_set_none_of_whose_vms_listens_are_over_at_once(azure: Sdk) -> None:
    sets = azure.compute.virtual_machine_scale_sets
    azure.make_set("deaf", 2)
    some = models.VirtualMachineScaleSetVMInstanceIDs(instance_ids=["0"])

    sets.begin_restart(GROUP, "deaf").result()
    sets.begin_restart(GROUP, "deaf", some).result()
    sets.begin_redeploy(GROUP, "deaf").result()
    sets.begin_reimage(GROUP, "deaf").result()
    sets.begin_reimage_all(GROUP, "deaf").result()
    sets.begin_deallocate(GROUP, "deaf", some).result()
    deallocated = power(azure, "deaf", "0")
    sets.begin_start(GROUP, "deaf").result()
    sets.begin_power_off(GROUP, "deaf", some).result()
    stopped = power(azure, "deaf", "0")

    assert (deallocated, stopped) == ("PowerState/deallocated", "PowerState/stopped")
    assert power(azure, "deaf", "1") == "PowerState/running"
    assert azure.document("deaf_1") == {"DocumentIncarnation": 1, "Events": []}


@pytest.mark.parametrize(
    ("action", "event_type"), [("begin_restart", "Reboot"), ("begin_redeploy", "Redeploy")]
)
def test_an_operation_on_one_instance_waits_for_its_event(
    azure: Sdk, action: str, event_type: str
) -> None:
    name = azure.make_set(f"one-{event_type}", 2)
    azure.document(f"{name}_0")
    begin: Callable[..., Any] = getattr(azure.compute.virtual_machine_scale_set_vms, action)

    poller = begin(GROUP, name, "1")
    [event] = azure.events(f"{name}_0")
    early = poller.status()
    azure.step("1h")
    poller.result()

    assert (event["EventType"], event["Resources"]) == (event_type, [f"{name}_1"])
    assert early == "InProgress"
    assert azure.events(f"{name}_0") == []


def test_a_deleted_instance_is_announced_deallocated_ones_are_not(azure: Sdk) -> None:
    vms = azure.compute.virtual_machine_scale_set_vms
    azure.make_set("told", 3, virtualMachineProfile=terminate_profile(15))
    azure.document("told_0")

    vms.begin_deallocate(GROUP, "told", "1").result()
    after_deallocating = azure.events("told_0")
    poller = vms.begin_delete(GROUP, "told", "2")
    [event] = azure.events("told_0")
    azure.step("15m")
    [started] = azure.events("told_0")
    azure.step("1h")
    poller.result()

    assert after_deallocating == []
    assert (event["EventType"], event["Resources"]) == ("Terminate", ["told_2"])
    assert started["EventStatus"] == "Started"
    with pytest.raises(ResourceNotFoundError):
        vms.get(GROUP, "told", "2")


def test_an_evicted_spot_instance_is_announced(azure: Sdk) -> None:
    azure.make_set("cheap", 2, virtualMachineProfile={"priority": "Spot"})
    azure.document("cheap_0")

    azure.compute.virtual_machine_scale_set_vms.simulate_eviction(GROUP, "cheap", "1")

    [event] = azure.events("cheap_0")
    assert (event["EventType"], event["Resources"]) == ("Preempt", ["cheap_1"])


@pytest.mark.parametrize("timeout", ["PT4M59S", "PT16M", "ten minutes", "", 10])
def test_a_notice_out_of_range_is_refused_and_changes_nothing(azure: Sdk, timeout: object) -> None:
    sets = azure.compute.virtual_machine_scale_sets
    if "strict" not in {each.name for each in sets.list(GROUP)}:
        azure.make_set("strict", 1, virtualMachineProfile=terminate_profile(6))
    before = sets.get(GROUP, "strict").as_dict()
    wrong = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": timeout}}

    with pytest.raises(HttpResponseError) as refused:
        sets.begin_update(
            GROUP, "strict", changed(virtualMachineProfile={"scheduledEventsProfile": wrong})
        ).result()

    assert refused.value.status_code == 400
    assert refused.value.error is not None
    assert refused.value.error.code
    assert "notBeforeTimeout" in refused.value.message
    assert sets.get(GROUP, "strict").as_dict() == before


def test_instances_come_in_pages(azure: Sdk) -> None:
    azure.make_set("large", 520)

    pages = [
        [each.instance_id for each in page]
        for page in azure.compute.virtual_machine_scale_set_vms.list(GROUP, "large").by_page()
    ]

    assert len(pages) > 1
    listed = [instance_id for page in pages for instance_id in page]
    assert sorted(listed, key=lambda each: int(each or "")) == [str(n) for n in range(520)]
    azure.compute.virtual_machine_scale_sets.begin_delete(GROUP, "large").result()


def test_a_deleted_set_is_gone_with_its_instances(azure: Sdk) -> None:
    sets = azure.compute.virtual_machine_scale_sets
    azure.make_set("gone", 2)

    sets.begin_delete(GROUP, "gone").result()

    with pytest.raises(ResourceNotFoundError) as refused:
        sets.get(GROUP, "gone")
    assert refused.value.error is not None
    assert refused.value.error.code == "ResourceNotFound"
    assert (
        azure.server.get("/vm/gone_0/metadata/scheduledevents?api-version=2020-07-01").status >= 400
    )


def changed(**properties: object) -> models.VirtualMachineScaleSetUpdate:
    return models.VirtualMachineScaleSetUpdate({"properties": properties})


def ids(*instance_ids: str) -> models.VirtualMachineScaleSetVMInstanceRequiredIDs:
    return models.VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=list(instance_ids))


def latest(azure: Sdk, name: str) -> dict[str, bool]:
    """Whether each instance is on the latest model."""
    listed = azure.compute.virtual_machine_scale_set_vms.list(GROUP, name)
    return {each.instance_id or "": each.latest_model_applied for each in listed}


def power(azure: Sdk, name: str, instance_id: str) -> str:
    view = azure.compute.virtual_machine_scale_set_vms.get_instance_view(GROUP, name, instance_id)
    codes = [each.code or "" for each in view.statuses or []]
    return next(code for code in codes if code.startswith("PowerState/"))
