from typing import Any

import pytest

from forewarned.core.ids import ResourceName
from tests.builders import HOUR
from tests.control.control_api import FLEET, ControlApi, later


async def test_a_scope_is_shown_with_its_vms(control: ControlApi) -> None:
    scope = await control.get("/v1/scopes/vm/web")

    [vm] = scope.pop("vms")
    assert scope == {
        "id": "vm/web",
        "kind": "virtual_machine",
        "active": False,
        "last_read_at": None,
        "last_read_by": None,
        "switches_off_at": None,
        "incarnation": 1,
        "policy": {
            "approve_user_reboot": False,
            "approve_user_redeploy": False,
            "approve_when_all_down": True,
            "event_grid_version": None,
        },
        "maintenance": None,
        "open_events": 0,
    }
    assert vm.pop("vm_id")
    assert vm == {
        "name": "web",
        "scope": "vm/web",
        "address": "10.0.0.1",
        "port_mark": None,
        "interface": "",
        "host": "rack1",
        "state": "running",
        "update_domain": 0,
        "fault_domain": 0,
        "priority": "Regular",
        "eviction_policy": "Deallocate",
        "terminate_notice": None,
        "zone": "",
        "size": "Standard_D2s_v5",
        "location": "here",
        "resource_group": "shop",
        "computer_name": "web",
        "tags": {"tier": "front"},
    }


async def test_a_scope_that_is_read_tells_when_silence_switches_it_off(control: ControlApi) -> None:
    await control.switch_on("web")
    await control.schedule("Reboot", "web")

    scope = await control.get("/v1/scopes/vm/web")

    assert scope["active"] is True
    assert scope["last_read_at"] == later()
    assert scope["switches_off_at"] == later(days=1)
    assert scope["open_events"] == 1


async def test_a_read_that_is_in_memory_only_counts(control: ControlApi) -> None:
    await control.switch_on("web")
    await control.services.use_cases.clock_control.step(HOUR)
    control.activation.seen((await control.get("/v1/vms/web"))["scope"], ResourceName("web"))

    scope = await control.get("/v1/scopes/vm/web")

    assert scope["last_read_at"] == later(hours=1)
    assert scope["last_read_by"] == "web"


async def test_a_scope_id_has_slashes(control: ControlApi) -> None:
    scope = await control.get("/v1/scopes/vmss/api/0")

    assert scope["id"] == "vmss/api/0"
    assert [vm["name"] for vm in scope["vms"]] == ["api_0", "api_1"]
    assert scope["vms"][0]["terminate_notice"] == "5m"


async def test_the_fleet_is_all_scopes(control: ControlApi) -> None:
    fleet = await control.get("/v1/fleet")

    ids = [scope["id"] for scope in fleet["scopes"]]
    assert sorted(ids) == ["avset/db", "vm/cheap", "vm/report", "vm/web", "vmss/api/0"]
    assert await control.get("/v1/scopes") == fleet


async def test_a_vm_goes_by_its_name_in_any_letter_case(control: ControlApi) -> None:
    vm = await control.get("/v1/vms/DB-1")

    assert (vm["name"], vm["scope"], vm["update_domain"]) == ("db-1", "avset/db", 1)


async def test_hosts_tell_which_vms_they_hold(control: ControlApi) -> None:
    hosts = {host["name"]: host["vms"] for host in await control.get("/v1/hosts")}

    assert hosts["rack1"] == ["web", "report"]
    assert hosts["rack2"] == ["cheap"]
    assert sum(map(len, hosts.values())) == 8


async def test_applying_the_same_fleet_again_changes_nothing(control: ControlApi) -> None:
    applied = await control.put_fleet(FLEET)

    assert applied == {"added": [], "changed": [], "removed": [], "unchanged": 8}


async def test_applying_a_fleet_tells_what_it_did(control: ControlApi) -> None:
    fleet = {"vms": [{"name": "web", "address": "10.0.0.1", "zone": "2"}, {"name": "new"}]}

    applied = await control.put_fleet(fleet)

    assert applied == {"added": ["new"], "changed": ["web"], "removed": [], "unchanged": 0}
    assert (await control.get("/v1/vms/new"))["address"].startswith("10.1.0.")


async def test_pruning_removes_what_is_not_named(control: ControlApi) -> None:
    no_sets = {**FLEET, "availability_sets": [], "scale_sets": []}

    applied = await control.put_fleet(no_sets, prune="true")

    assert sorted(applied["removed"]) == ["api_0", "api_1", "db-0", "db-1", "db-2"]
    assert applied["unchanged"] == 3


async def test_a_fleet_of_many_vms_may_be_larger_than_other_bodies(control: ControlApi) -> None:
    padded = {**FLEET, "vms": [{**vm, "tags": {"pad": "x" * (1 << 20)}} for vm in FLEET["vms"]]}

    applied = await control.put_fleet(padded)

    assert applied["changed"] == ["web", "report", "cheap"]


@pytest.mark.parametrize(
    ("fleet", "field"),
    [
        ({"vms": [{"name": "web"}, {"name": "web"}]}, "vms[1]"),
        ({"vms": [{"name": "a", "adress": "10.0.0.9"}]}, "vms[0].adress"),
        ({"scale_sets": [{"name": "api", "capacity": -1}]}, "scale_sets[0].capacity"),
        (
            {"vms": [{"name": "a", "terminate_notification": "soon"}]},
            "vms[0].terminate_notification",
        ),
        ({"machines": []}, "machines"),
    ],
)
async def test_a_mistake_in_a_fleet_is_refused_with_its_place(
    control: ControlApi, fleet: Any, field: str
) -> None:
    status, error = await control.refused("PUT", "/v1/fleet", fleet)

    assert (status, error["code"], error["field"]) == (400, "invalid_fleet", field)


@pytest.mark.parametrize("body", [b"", b"[]", b"null"])
async def test_a_fleet_without_a_plan_is_refused_rather_than_emptied(
    control: ControlApi, body: bytes
) -> None:
    response = await control.http.put("/v1/fleet?prune=true", content=body)

    assert response.status_code == 400
    assert len((await control.get("/v1/fleet"))["scopes"]) == 5


async def test_an_address_that_another_vm_has_is_a_conflict(control: ControlApi) -> None:
    status, error = await control.refused(
        "PUT", "/v1/fleet", {"vms": [{"name": "new", "address": "10.0.0.1"}]}
    )

    assert (status, error["code"], error["field"]) == (409, "address_taken", "address")


async def test_a_range_with_too_few_addresses_is_a_conflict(control: ControlApi) -> None:
    names = [{"name": f"vm{number}"} for number in range(3)]

    status, error = await control.refused(
        "PUT", "/v1/fleet", {"address_range": "10.7.0.0/30", "vms": names}
    )

    assert (status, error["code"], error["field"]) == (409, "addresses_exhausted", "address")


async def test_two_vms_may_swap_their_addresses(control: ControlApi) -> None:
    web, report, *others = FLEET["vms"]
    swapped = [
        {**web, "address": report["address"]},
        {**report, "address": web["address"]},
        *others,
    ]

    applied = await control.put_fleet({**FLEET, "vms": swapped})

    assert applied["changed"] == ["web", "report"]
    assert (await control.get("/v1/vms/web"))["address"] == "10.0.0.2"
    assert (await control.get("/v1/vms/report"))["address"] == "10.0.0.1"


async def test_a_vm_gives_way_to_the_one_that_its_address_is_declared_for(
    control: ControlApi,
) -> None:
    fleet = {"vms": [{"name": "web", "address": "10.0.0.2"}, {"name": "report"}]}

    await control.put_fleet(fleet)

    assert (await control.get("/v1/vms/web"))["address"] == "10.0.0.2"
    assert (await control.get("/v1/vms/report"))["address"].startswith("10.1.0.")


async def test_pruning_takes_a_vm_out_of_a_scope_that_it_is_not_planned_in(
    control: ControlApi,
) -> None:
    joined = {"availability_sets": [{"name": "front", "vms": ["web", "report"]}]}

    applied = await control.put_fleet(joined, prune="true")

    assert {"web", "report"} <= set(applied["removed"])
    assert applied["added"] == ["web", "report"]
    vm = await control.get("/v1/vms/web")
    assert (vm["scope"], vm["address"]) == ("avset/front", "10.0.0.1")
    assert (await control.get("/v1/scopes/vm/web"))["vms"] == []


async def test_a_vm_that_is_made_anew_has_nothing_to_fear_from_what_the_old_one_was_in_for(
    control: ControlApi,
) -> None:
    """I9, F18: nor does it read of it."""
    await control.switch_on("web")
    event = await control.schedule("Terminate", "web")
    await control.post(f"/v1/events/{event['event_id']}/approve")
    await control.put_fleet({**FLEET, "vms": FLEET["vms"][1:]}, prune="true")

    await control.put_fleet(FLEET)

    ended = await control.get(f"/v1/events/{event['event_id']}")
    assert (ended["status"], ended["ended_at"]) == ("Completed", later())
    scope = await control.get("/v1/scopes/vm/web")
    assert (scope["open_events"], [vm["name"] for vm in scope["vms"]]) == (0, ["web"])


async def test_unknown_things_are_not_found(control: ControlApi) -> None:
    assert await control.refused("GET", "/v1/vms/nobody") == (
        404,
        {"code": "unknown_resource", "message": "no VM is named 'nobody'", "field": "name"},
    )
    assert await control.refused("GET", "/v1/scopes/no/where") == (
        404,
        {"code": "unknown_scope", "message": "no scope is named 'no/where'", "field": "scope"},
    )
    status, error = await control.refused("POST", "/v1/hosts/nothing/fail")
    assert (status, error["code"], error["field"]) == (404, "unknown_host", "host")


# --- port marks ----------------------------------------------------------------------------------

MARKED = {"name": "new", "host": "hv-a", "port_mark": 7, "interface": "tap-7"}


async def test_a_vm_with_a_port_mark_shows_it_and_takes_no_address_of_the_range(
    control: ControlApi,
) -> None:
    await control.put_fleet({"vms": [MARKED, {**MARKED, "name": "newer", "port_mark": 8}]})
    vm = await control.get("/v1/vms/new")

    assert (vm["address"], vm["port_mark"], vm["interface"]) == ("", 7, "tap-7")


async def test_vms_with_port_marks_may_have_the_same_address(control: ControlApi) -> None:
    """S3: they are not known by it."""
    same = [{**MARKED, "address": "10.0.0.1"}, {"name": "b", "port_mark": 8, "address": "10.0.0.1"}]

    await control.put_fleet({"vms": same})

    shown = [await control.get(f"/v1/vms/{name}") for name in ("web", "new", "b")]
    assert [vm["address"] for vm in shown] == ["10.0.0.1"] * 3
    assert [vm["port_mark"] for vm in shown] == [None, 7, 8]


async def test_a_port_mark_that_another_vm_has_is_a_conflict(control: ControlApi) -> None:
    await control.put_fleet({"vms": [MARKED]})

    status, error = await control.refused(
        "PUT", "/v1/fleet", {"vms": [{"name": "other", "port_mark": 7}]}
    )

    assert (status, error["code"], error["field"]) == (409, "address_taken", "port_mark")
    assert error["message"] == "port mark 7 is already bound to VM 'new'"


async def test_two_vms_may_swap_their_port_marks(control: ControlApi) -> None:
    other = {"name": "other", "port_mark": 8}
    await control.put_fleet({"vms": [MARKED, other]})

    await control.put_fleet({"vms": [{**MARKED, "port_mark": 8}, {**other, "port_mark": 7}]})

    assert (await control.get("/v1/vms/new"))["port_mark"] == 8
    assert (await control.get("/v1/vms/other"))["port_mark"] == 7


async def test_a_vm_whose_port_mark_is_declared_no_more_gets_an_address(
    control: ControlApi,
) -> None:
    await control.put_fleet({"vms": [MARKED]})

    await control.put_fleet({"vms": [{"name": "new"}]})

    vm = await control.get("/v1/vms/new")
    assert vm["port_mark"] is None
    assert vm["address"].startswith("10.1.0.")


async def test_rules_of_a_host_have_its_vms(control: ControlApi) -> None:
    bare = {"name": "bare", "host": "hv-a"}
    elsewhere = {"name": "far", "host": "hv-b", "port_mark": 9, "interface": "tap-9"}
    await control.put_fleet({"vms": [{**MARKED, "address": "10.0.0.7"}, bare, elsewhere]})

    found = await control.get("/v1/hosts/hv-a/rules")
    of_all = await control.get("/v1/hosts/hv-a/rules", every_vm="true", metadata="10.9.9.9")

    assert (found["host"], found["left_out"]) == ("hv-a", ["bare"])
    assert '"tap-7" : 7' in found["rules"]
    assert '"tap-7" . 10.0.0.7' in found["rules"]
    assert "ip daddr != 169.254.169.254 accept" in found["rules"]
    assert "tap-9" not in found["rules"]
    assert '"tap-9" : 9' in of_all["rules"]
    assert "ip daddr != 10.9.9.9 accept" in of_all["rules"]


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("/v1/hosts/none/rules", (404, "unknown_host", "host")),
        ("/v1/hosts/hv-a/rules?metadata=fd00::1", (400, "bad_request", "metadata")),
        ("/v1/hosts/hv-a/rules?every_vm=true", (409, "shared_interface", "interface")),
    ],
)
async def test_rules_that_can_not_be_made_are_refused(
    control: ControlApi, path: str, refusal: tuple[int, str, str]
) -> None:
    moved = {**MARKED, "name": "other", "host": "hv-b", "port_mark": 8}
    await control.put_fleet({"vms": [MARKED, moved]})

    status, error = await control.refused("GET", path)

    assert (status, error["code"], error["field"]) == refusal
