"""Scale sets as `az` and the SDKs declare them: what they send, and what they get back."""

from typing import Final

import pytest

from forewarned.core.model import EventType
from tests.builders import MINUTE
from tests.control.arm.asking import ROOT, SUBSCRIPTION
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator
from tests.control.arm.sets import (
    IMAGE,
    SETS,
    WEB,
    a_set,
    everything,
    ids,
    instances,
    profile,
    terminate,
    terminate_profile,
)

pytestmark = pytest.mark.anyio

POLICY: Final = "scheduledEventsPolicy"


# --- making --------------------------------------------------------------------------------------


async def test_a_new_set_is_created_with_its_vms(arm: Emulator) -> None:
    response = await arm.ask("PUT", WEB, a_set())

    assert response.status_code == 201
    assert response.json()["properties"]["provisioningState"] == "Creating"
    operation = response.headers["Azure-AsyncOperation"].removeprefix(ROOT)
    assert await arm.status(operation) == "Succeeded"
    shown = await arm.good("GET", WEB)
    assert shown["id"] == WEB
    assert (shown["name"], shown["location"], shown["tags"]) == ("web", "local", {})
    assert shown["type"] == "Microsoft.Compute/virtualMachineScaleSets"
    assert shown["sku"] == {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 2}
    assert shown["properties"]["provisioningState"] == "Succeeded"
    assert shown["properties"]["timeCreated"] == "2026-01-05T12:00:00+00:00"
    assert shown["properties"]["singlePlacementGroup"] is True
    assert shown["properties"]["upgradePolicy"] == {"mode": "Manual"}
    assert await ids(arm) == ["0", "1"]


async def test_a_set_that_says_no_location_is_where_its_group_is(arm: Emulator) -> None:
    await arm.good("PUT", WEB, {"sku": {"capacity": 1}})

    assert (await arm.good("GET", WEB))["location"] == "local"


async def test_a_flexible_set_without_anything_has_no_vms(arm: Emulator) -> None:
    body = {"location": "local", "properties": {"orchestrationMode": "flexible"}}

    await arm.good("PUT", WEB, body)

    shown = await arm.good("GET", WEB)
    assert shown["sku"]["capacity"] == 0
    assert shown["properties"]["orchestrationMode"] == "Flexible"
    assert shown["properties"]["singlePlacementGroup"] is False
    assert await instances(arm) == []


async def test_vms_of_a_flexible_set_are_resources_of_their_own(arm: Emulator) -> None:
    await arm.good("PUT", WEB, a_set(orchestrationMode="Flexible"))

    first, second = await instances(arm)

    assert first["instanceId"] == first["name"]
    assert first["id"] == f"{COMPUTE}/virtualMachines/{first['name']}"
    await arm.begin("POST", f"{WEB}/delete", {"instanceIds": [first["instanceId"]]})
    assert await ids(arm) == [second["instanceId"]]


async def test_a_text_for_a_flag_is_given_back_as_a_flag(web: Emulator) -> None:
    assert await terminate_profile(web) == {"enable": True, "notBeforeTimeout": "PT5M"}


async def test_the_usual_timeout_is_five_minutes(web: Emulator) -> None:
    await web.good("PUT", WEB, terminate(notBeforeTimeout=None))

    assert await terminate_profile(web) == {"enable": True, "notBeforeTimeout": "PT5M"}


async def test_what_a_client_says_beyond_what_is_understood_is_kept(arm: Emulator) -> None:
    await arm.good("PUT", WEB, a_set(overprovision=False, zoneBalance=True))
    await arm.good("PUT", WEB, {"plan": {"name": "x"}, "dependsOn": ["y"]})

    shown = await arm.good("GET", WEB)

    assert "dependsOn" not in shown
    assert shown["properties"]["zoneBalance"] is True
    assert shown["properties"]["overprovision"] is False
    assert shown["plan"] == {"name": "x"}


async def test_secrets_are_not_given_back(arm: Emulator) -> None:
    os_profile = {
        "adminUsername": "ada",
        "adminPassword": "s3cret",
        "AdminPassword": "s3cret",
        "customData": "s3cret",
        "secrets": [{"vaultCertificates": ["s3cret"]}],
        "windowsConfiguration": {"additionalUnattendContent": [{"content": "s3cret"}]},
    }
    extension = {"name": "e", "properties": {"protectedSettings": {"key": "s3cret"}, "type": "T"}}
    body = profile(
        osProfile=os_profile, userData="s3cret", extensionProfile={"extensions": [extension]}
    )
    body["sku"] = {"capacity": 1}

    put = await arm.ask("PUT", WEB, body)
    shown = await arm.ask("GET", WEB)
    [one] = await instances(arm)

    assert "s3cret" not in put.text + shown.text + str(one)
    assert '"type":"T"' in shown.text
    assert "s3cret" not in str(await everything(arm))


async def test_names_are_compared_in_any_letter_case_and_kept_as_first_written(
    web: Emulator,
) -> None:
    shown = await web.good("GET", WEB.upper().replace("SUBSCRIPTIONS", "subscriptions"))
    again = await web.ask("PUT", f"{SETS}/WEB", {"sku": {"capacity": 3}})

    assert shown["id"] == WEB
    assert again.status_code == 200
    assert again.json()["name"] == "web"
    assert [each["name"] for each in await instances(web)] == ["web_0", "web_1", "web_2"]


# --- merging -------------------------------------------------------------------------------------


async def test_scaling_as_az_does_it_leaves_all_else(web: Emulator) -> None:
    before = await web.good("GET", WEB)

    await web.good(
        "PUT", WEB, {"location": "local", "sku": {"capacity": 4, "name": "Standard_D2s_v5"}}
    )

    after = await web.good("GET", WEB)
    assert after["sku"]["capacity"] == 4
    assert after["properties"] == before["properties"]
    assert all(each["properties"]["latestModelApplied"] for each in await instances(web))


async def test_an_update_as_az_does_it_keeps_the_image_it_leaves_out(web: Emulator) -> None:
    sent = await web.good("GET", WEB)
    del sent["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"]
    sent["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] = {
        "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT10M"}
    }

    await web.good("PUT", WEB, sent)

    shown = await web.good("GET", WEB)
    storage = shown["properties"]["virtualMachineProfile"]["storageProfile"]
    assert storage["imageReference"] == IMAGE
    assert await terminate_profile(web) == {"enable": True, "notBeforeTimeout": "PT10M"}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"notBeforeTimeout": "PT10M"}, {"enable": True, "notBeforeTimeout": "PT10M"}),
        ({"enable": False}, {"enable": False, "notBeforeTimeout": "PT5M"}),
        ({"enable": "false"}, {"enable": False, "notBeforeTimeout": "PT5M"}),
        ({}, {"enable": True, "notBeforeTimeout": "PT5M"}),
        ({"enable": None}, {"notBeforeTimeout": "PT5M"}),
        ({"notBeforeTimeout": "PT450S"}, {"enable": True, "notBeforeTimeout": "PT450S"}),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_part_that_is_sent_merges_into_what_there_is(
    web: Emulator, method: str, sent: dict[str, object], expected: dict[str, object]
) -> None:
    response = await web.ask(method, WEB, terminate(**sent))

    assert response.status_code == 200, response.text
    assert await terminate_profile(web) == expected


async def test_null_removes_and_lists_replace(web: Emulator) -> None:
    await web.good("PUT", WEB, {"zones": ["1", "2"], "properties": {"x": {"list": [1, 2], "y": 1}}})

    await web.good(
        "PATCH",
        WEB,
        {"zones": ["1", "2", "3"], "properties": {"x": {"list": [3], "y": None}}}
        | {"tags": {"a": "b"}},
    )

    shown = await web.good("GET", WEB)
    assert shown["zones"] == ["1", "2", "3"]
    assert shown["properties"]["x"] == {"list": [3]}


async def test_tags_are_replaced_together_so_that_one_can_be_taken_away(web: Emulator) -> None:
    await web.good("PUT", WEB, {"tags": {"a": "1", "b": "2"}})

    await web.good("PUT", WEB, {"tags": {"b": "2"}})

    assert (await web.good("GET", WEB))["tags"] == {"b": "2"}
    await web.good("PUT", WEB, {"sku": {"capacity": 3}})
    assert (await web.good("GET", WEB))["tags"] == {"b": "2"}


async def test_the_published_guides_example_works_word_for_word(web: Emulator) -> None:
    body = terminate(notBeforeTimeout="PT5M", enable=True)

    response = await web.ask("PUT", f"{WEB}?api-version=2019-03-01", body)

    assert response.status_code == 200
    assert await terminate_profile(web) == {"enable": True, "notBeforeTimeout": "PT5M"}


async def test_an_api_older_than_the_profile_says_so_as_azure_does(web: Emulator) -> None:
    before = await everything(web)

    refused = await web.refused("PUT", f"{WEB}?api-version=2018-10-01", terminate(enable=True))

    assert refused == (
        400,
        "BadRequest",
        "Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'.",
    )
    assert await everything(web) == before


# --- models --------------------------------------------------------------------------------------


async def applied(arm: Emulator) -> list[bool]:
    return [each["properties"]["latestModelApplied"] for each in await instances(arm)]


async def test_a_new_model_waits_until_vms_are_brought_to_it(web: Emulator) -> None:
    await web.good("PUT", WEB, terminate(notBeforeTimeout="PT10M"))
    await web.good("PUT", WEB, {"sku": {"capacity": 3}})
    assert await applied(web) == [False, False, True]

    await web.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["0"]})
    assert await applied(web) == [True, False, True]

    await web.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["*"]})
    assert await applied(web) == [True, True, True]


@pytest.mark.parametrize("mode", ["Automatic", "automatic"])
async def test_with_automatic_upgrades_vms_follow_at_once(arm: Emulator, mode: str) -> None:
    await arm.good("PUT", WEB, a_set(upgradePolicy={"mode": mode}))

    await arm.good("PUT", WEB, {"sku": {"name": "Standard_D4s_v5"}, "tags": {"a": "b"}})

    for each in await instances(arm):
        assert each["properties"]["latestModelApplied"] is True
        assert each["properties"]["hardwareProfile"] == {"vmSize": "Standard_D4s_v5"}
        assert each["tags"] == {"a": "b"}


async def test_instances_show_the_model_they_are_on(web: Emulator) -> None:
    newer = {**IMAGE, "version": "2.0.0"}
    await web.good("PUT", WEB, profile(storageProfile={"imageReference": newer}))
    await web.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["1"]})

    versions = [
        each["properties"]["storageProfile"]["imageReference"]["version"]
        for each in await instances(web)
    ]

    assert versions == ["1.0.0", "2.0.0"]


async def test_what_is_no_part_of_the_model_leaves_vms_on_the_latest(web: Emulator) -> None:
    extensions = {"extensions": [{"name": "e"}]}
    await web.good("PUT", WEB, profile(extensionProfile=extensions))
    await web.good("PUT", WEB, {"properties": {"overprovision": False}})

    assert await applied(web) == [True, True]


async def test_a_new_image_is_told_of_where_the_model_says_so(web: Emulator) -> None:
    told = {"osImageNotificationProfile": {"enable": True}}
    await web.good("PUT", WEB, profile(scheduledEventsProfile=told))
    await web.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["*"]})
    assert await web.read("web_0") == ()
    newer = {**IMAGE, "version": "2.0.0"}
    await web.good("PUT", WEB, profile(storageProfile={"imageReference": newer}))

    operation = await web.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["1"]})

    [event] = await web.read("web_0")
    assert (event.type, event.resources) == (EventType.REBOOT, ("web_1",))
    assert event.not_before == web.clock.now() + 15 * MINUTE
    assert await web.status(operation) == "InProgress"
    await web.step(30 * MINUTE)
    assert await web.status(operation) == "Succeeded"


async def test_a_policy_lets_events_start_at_once(web: Emulator) -> None:
    policy = {"userInitiatedReboot": {"automaticallyApprove": "true"}}
    await web.good("PUT", WEB, {"properties": {POLICY: policy}})
    await web.read("web_0")

    await web.begin("POST", f"{WEB}/restart", {"instanceIds": ["0"]})

    [event] = await web.read("web_0")
    assert event.status == "Started"
    shown = await web.good("GET", WEB)
    assert shown["properties"][POLICY] == {"userInitiatedReboot": {"automaticallyApprove": True}}
    assert await applied(web) == [True, True]


# --- lists ---------------------------------------------------------------------------------------


async def test_sets_are_listed_by_group_and_by_subscription(web: Emulator) -> None:
    await web.good("PUT", GROUP.replace("rg1", "rg2"), {"location": "local"})
    other = WEB.replace("rg1", "rg2").replace("web", "api")
    await web.good("PUT", other, a_set(0))

    here = await web.good("GET", SETS)
    everywhere = await web.good(
        "GET",
        f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachineScaleSets",
    )

    assert [each["id"] for each in here["value"]] == [WEB]
    assert [each["id"] for each in everywhere["value"]] == [WEB, other]


async def test_long_lists_come_in_pages(web: Emulator) -> None:
    await web.good("PUT", WEB, {"sku": {"capacity": 12}})
    link: str | None = f"{WEB}/virtualMachines?api-version=2024-11-01&$top=5"
    seen: list[str] = []

    while link is not None:
        page = await web.good("GET", link)
        seen += [each["instanceId"] for each in page["value"]]
        link = page["nextLink"].removeprefix(ROOT) if "nextLink" in page else None

    assert seen == [str(number) for number in range(12)]


# --- deleting ------------------------------------------------------------------------------------


async def test_deleting_a_set_deletes_its_vms(web: Emulator) -> None:
    operation = await web.begin("DELETE", WEB)

    assert await web.status(operation) == "Succeeded"
    assert (await web.refused("GET", WEB))[0] == 404
    assert (await web.good("GET", SETS))["value"] == []
    assert await web.binding("web_0") is None
    assert (await web.ask("DELETE", WEB)).status_code == 204


async def test_a_set_goes_when_the_last_of_its_vms_does(web: Emulator) -> None:
    await web.read("web_0")

    operation = await web.begin("DELETE", WEB)

    assert (await web.good("GET", WEB))["properties"]["provisioningState"] == "Deleting"
    assert (await web.refused("PUT", WEB, a_set()))[:2] == (409, "OperationNotAllowed")
    assert await web.status(operation) == "InProgress"
    await web.step(10 * MINUTE)
    assert await web.status(operation) == "Succeeded"
    assert (await web.refused("GET", WEB))[0] == 404
    assert (await web.ask("PUT", WEB, a_set())).status_code == 201


async def test_deleting_by_force_waits_for_nobody(web: Emulator) -> None:
    await web.read("web_0")
    waiting = await web.begin("DELETE", WEB)

    forced = await web.begin("DELETE", f"{WEB}?api-version=2023-09-01&forceDeletion=true")

    assert await web.status(forced) == "Succeeded"
    assert await web.status(waiting) == "Canceled"
    assert await web.binding("web_1") is None
