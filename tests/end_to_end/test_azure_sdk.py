"""VMs, resource groups and approvals from outside, through the Azure SDKs for Python."""

from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.compute import models
from azure.mgmt.maintenance.models import ScheduledEventsIdList

from tests.end_to_end.azure_sdk import GROUP, Sdk, sdk

UNKNOWN_ID = "00000000-0000-0000-0000-00000000000F"


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    with sdk(tmp_path_factory.mktemp("sdk")) as made:
        yield made


# --- resource groups ------------------------------------------------------------------------------


def test_a_resource_group_is_there_from_its_creation_to_its_deletion(azure: Sdk) -> None:
    groups = azure.resources.resource_groups

    before = groups.check_existence("brief")
    made = groups.create_or_update("brief", {"location": "local", "tags": {"for": "test"}})
    during = groups.check_existence("BRIEF")
    listed = {each.name for each in groups.list()}
    groups.begin_delete("brief").result()

    assert (before, during, groups.check_existence("brief")) == (False, True, False)
    assert (made.name, made.location, made.tags) == ("brief", "local", {"for": "test"})
    # VMs of the fleet that the server came with are in a group as well.
    assert listed >= {"brief", "demo", GROUP}


# --- VMs ------------------------------------------------------------------------------------------


def test_what_was_put_is_what_is_got(azure: Sdk) -> None:
    hardware = {"vmSize": "Standard_D4s_v5"}
    grid = {"enable": True, "scheduledEventsApiVersion": "2020-07-01"}
    policy = {
        "userInitiatedRedeploy": {"automaticallyApprove": True},
        "scheduledEventsAdditionalPublishingTargets": {"eventGridAndResourceGraph": grid},
    }
    azure.make_vm("put", hardwareProfile=hardware, scheduledEventsPolicy=policy)

    got = azure.compute.virtual_machines.get(GROUP, "put", expand="instanceView")

    shown = got.as_dict()["properties"]
    assert (got.name, got.location) == ("put", "local")
    assert (shown["hardwareProfile"], shown["scheduledEventsPolicy"]) == (hardware, policy)
    assert "PowerState/running" in {each["code"] for each in shown["instanceView"]["statuses"]}


def test_a_patch_changes_what_it_names(azure: Sdk) -> None:
    azure.make_vm("patched", hardwareProfile={"vmSize": "Standard_D4s_v5"})
    tags = models.VirtualMachineUpdate(tags={"app": "shop"})

    azure.compute.virtual_machines.begin_update(GROUP, "patched", tags).result()

    got = azure.compute.virtual_machines.get(GROUP, "patched")
    assert got.tags == {"app": "shop"}
    assert got.hardware_profile.vm_size == "Standard_D4s_v5"


def test_vms_are_listed_in_pages(azure: Sdk) -> None:
    described = {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "capacity": 300},
        "properties": {"orchestrationMode": "Flexible", "virtualMachineProfile": {}},
    }
    azure.compute.virtual_machine_scale_sets.begin_create_or_update(
        GROUP, "crowd", models.VirtualMachineScaleSet(described)
    ).result()

    pages = [
        [each.name or "" for each in page]
        for page in azure.compute.virtual_machines.list(GROUP).by_page()
    ]
    everywhere = {each.name for each in azure.compute.virtual_machines.list_all()}

    names = [name for page in pages for name in page]
    assert len(pages) > 1
    assert len(names) == len(set(names))
    assert sum(name.startswith("crowd_") for name in names) == 300
    assert everywhere >= {*names, "web"}


def test_operations_on_a_vm_that_never_asked_are_over_at_once(azure: Sdk) -> None:
    vms = azure.compute.virtual_machines
    azure.make_vm("deaf")

    vms.begin_restart(GROUP, "deaf").result()
    vms.begin_redeploy(GROUP, "deaf").result()
    vms.begin_deallocate(GROUP, "deaf").result()
    deallocated = power(azure, "deaf")
    vms.begin_start(GROUP, "deaf").result()
    vms.begin_power_off(GROUP, "deaf").result()
    stopped = power(azure, "deaf")
    vms.begin_start(GROUP, "deaf").result()

    assert (deallocated, stopped) == ("PowerState/deallocated", "PowerState/stopped")
    assert power(azure, "deaf") == "PowerState/running"
    assert azure.document("deaf") == {"DocumentIncarnation": 1, "Events": []}


def test_a_restart_asked_for_twice_is_one_event(azure: Sdk) -> None:
    azure.make_vm("twice")
    azure.document("twice")

    pollers = [azure.compute.virtual_machines.begin_restart(GROUP, "twice") for _ in range(2)]
    events = azure.events("twice")
    azure.step("1h")
    for poller in pollers:
        poller.result()

    assert len(events) == 1


def test_a_policy_that_approves_restarts_spares_the_wait(azure: Sdk) -> None:
    policy = {"userInitiatedReboot": {"automaticallyApprove": True}}
    azure.make_vm("auto", scheduledEventsPolicy=policy)
    azure.document("auto")

    poller = azure.compute.virtual_machines.begin_restart(GROUP, "auto")
    [event] = azure.events("auto")
    azure.step("1h")
    poller.result()

    assert event["EventStatus"] == "Started"


def test_an_evicted_spot_vm_is_announced_and_others_are_refused(azure: Sdk) -> None:
    vms = azure.compute.virtual_machines
    azure.make_vm("cheap", priority="Spot", evictionPolicy="Deallocate")
    azure.make_vm("dear")
    azure.document("cheap")

    vms.simulate_eviction(GROUP, "cheap")
    with pytest.raises(HttpResponseError, match="Spot") as refused:
        vms.simulate_eviction(GROUP, "dear")

    [event] = azure.events("cheap")
    assert event["EventType"] == "Preempt"
    assert refused.value.status_code is not None
    assert 400 <= refused.value.status_code < 500


def test_a_deleted_vm_is_not_found(azure: Sdk) -> None:
    azure.make_vm("gone")

    azure.compute.virtual_machines.begin_delete(GROUP, "gone").result()

    with pytest.raises(ResourceNotFoundError) as refused:
        azure.compute.virtual_machines.begin_restart(GROUP, "gone")
    assert refused.value.error is not None
    assert refused.value.error.code == "ResourceNotFound"
    assert "gone" in refused.value.message


# --- approvals from outside -----------------------------------------------------------------------


def test_an_acknowledged_event_starts(azure: Sdk) -> None:
    azure.make_vm("ready")
    azure.document("ready")
    poller = azure.compute.virtual_machines.begin_restart(GROUP, "ready")
    [event] = azure.events("ready")

    answer = azure.maintenance.scheduled_events.acknowledge(
        GROUP, "virtualMachines", "ready", event["EventId"]
    )

    [started] = azure.events("ready")
    azure.step("1h")
    poller.result()
    assert answer.value == "Successfully Approved"
    assert started["EventStatus"] == "Started"


def test_all_of_a_list_are_acknowledged(azure: Sdk) -> None:
    azure.make_set("listed", 2)
    azure.document("listed_0")
    poller = azure.compute.virtual_machine_scale_sets.begin_restart(GROUP, "listed")
    event_ids = [event["EventId"] for event in azure.events("listed_0")]

    answer = azure.maintenance.scheduled_events.acknowledge_list(
        GROUP, "virtualMachineScaleSets", "listed", ScheduledEventsIdList(value=event_ids)
    )

    started = {event["EventStatus"] for event in azure.events("listed_0")}
    azure.step("1h")
    poller.result()
    assert len(event_ids) == 2
    assert answer.value == "Successfully Approved"
    assert started == {"Started"}


def test_of_a_mixed_list_the_known_are_acknowledged_and_the_unknown_are_named(azure: Sdk) -> None:
    azure.make_vm("mixed")
    azure.document("mixed")
    poller = azure.compute.virtual_machines.begin_restart(GROUP, "mixed")
    [event] = azure.events("mixed")
    wanted = ScheduledEventsIdList(value=[event["EventId"], UNKNOWN_ID])

    with pytest.raises(HttpResponseError) as partly:
        azure.maintenance.scheduled_events.acknowledge_list(
            GROUP, "virtualMachines", "mixed", wanted
        )

    [started] = azure.events("mixed")
    azure.step("1h")
    poller.result()
    assert partly.value.status_code == 207
    assert partly.value.error is not None
    assert partly.value.error.code == "MultiStatusResponse"
    results = {each.target: each.code for each in partly.value.error.details}
    assert results[UNKNOWN_ID] == "NotFound"
    assert started["EventStatus"] == "Started"


def test_an_event_of_another_vm_is_not_found(azure: Sdk) -> None:
    azure.make_vm("mine")
    azure.make_vm("theirs")
    azure.document("theirs")
    poller = azure.compute.virtual_machines.begin_restart(GROUP, "theirs")
    [event] = azure.events("theirs")

    with pytest.raises(ResourceNotFoundError):
        azure.maintenance.scheduled_events.acknowledge(
            GROUP, "virtualMachines", "mine", event["EventId"]
        )

    [unmoved] = azure.events("theirs")
    azure.step("1h")
    poller.result()
    assert unmoved == event


def power(azure: Sdk, vm: str) -> str:
    view = azure.compute.virtual_machines.instance_view(GROUP, vm)
    codes = [each.code or "" for each in view.statuses or []]
    return next(code for code in codes if code.startswith("PowerState/"))
