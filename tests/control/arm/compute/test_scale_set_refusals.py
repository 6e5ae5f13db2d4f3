"""Scale sets that make no sense: each a clear refusal, and nothing changed."""

from typing import Any, Final

import pytest

from tests.control.arm.emulator import GROUP, Emulator
from tests.control.arm.sets import SETS, WEB, a_set, everything, profile, terminate

pytestmark = pytest.mark.anyio

POLICY: Final = "scheduledEventsPolicy"
BAD: Final[list[tuple[str, dict[str, Any]]]] = [
    ("too short", terminate(notBeforeTimeout="PT4M59S")),
    ("too long", terminate(notBeforeTimeout="PT99M")),
    ("no duration", terminate(notBeforeTimeout="10 minutes")),
    ("a duration of people", terminate(notBeforeTimeout="10m")),
    ("a number for a duration", terminate(notBeforeTimeout=600)),
    ("no flag", terminate(enable="yes")),
    ("a number for a flag", terminate(enable=1)),
    ("a disabled profile is looked at too", terminate(enable=False, notBeforeTimeout="PT1M")),
    ("terminate is no object", profile(scheduledEventsProfile={"terminateNotificationProfile": 1})),
    ("profile is no object", profile(scheduledEventsProfile=[])),
    (
        "image notice",
        profile(
            scheduledEventsProfile={"osImageNotificationProfile": {"notBeforeTimeout": "PT10M"}}
        ),
    ),
    ("vm profile is a list", {"properties": {"virtualMachineProfile": []}}),
    ("properties is a text", {"properties": "x"}),
    ("sku is a text", {"sku": "x"}),
    ("capacity is negative", {"sku": {"capacity": -1}}),
    ("capacity is huge", {"sku": {"capacity": 1001}}),
    ("more than a placement group", {"sku": {"capacity": 101}}),
    ("capacity is a text", {"sku": {"capacity": "3"}}),
    ("capacity is a fraction", {"sku": {"capacity": 1.5}}),
    ("capacity is a flag", {"sku": {"capacity": True}}),
    ("size is a number", {"sku": {"name": 5}}),
    ("size is a path", {"sku": {"name": "../x"}}),
    ("tags is a list", {"tags": ["a"]}),
    ("a tag is a number", {"tags": {"a": 1}}),
    ("a tag is long", {"tags": {"a": "x" * 257}}),
    ("many tags", {"tags": {f"t{number}": "" for number in range(51)}}),
    ("zones is a text", {"zones": "1"}),
    ("a zone twice", {"zones": ["1", "1"]}),
    ("a zone that is none", {"zones": ["x"]}),
    ("location is a number", {"location": 7}),
    ("mode is none", {"properties": {"orchestrationMode": "Both"}}),
    ("upgrade mode is none", {"properties": {"upgradePolicy": {"mode": "Never"}}}),
    ("upgrade policy is a text", {"properties": {"upgradePolicy": "Manual"}}),
    ("placement group flag", {"properties": {"singlePlacementGroup": "maybe"}}),
    ("fault domains", {"properties": {"platformFaultDomainCount": 9}}),
    ("policy is a list", {"properties": {POLICY: []}}),
    ("policy part", {"properties": {POLICY: {"userInitiatedReboot": True}}}),
    (
        "policy flag",
        {"properties": {POLICY: {"userInitiatedReboot": {"automaticallyApprove": "si"}}}},
    ),
    ("priority is none", profile(priority="Cheap")),
    ("eviction policy is none", profile(evictionPolicy="Keep")),
    ("os profile is a text", profile(osProfile="x")),
    ("prefix", profile(osProfile={"computerNamePrefix": "a b"})),
    ("storage is a list", profile(storageProfile=[])),
    ("disk is a text", profile(storageProfile={"osDisk": "c:"})),
    ("system is none", profile(storageProfile={"osDisk": {"osType": "BeOS"}})),
    ("image is a text", profile(storageProfile={"imageReference": "Ubuntu"})),
    ("network is a text", profile(networkProfile="x")),
    ("extensions are a text", profile(extensionProfile={"extensions": "x"})),
]


@pytest.mark.parametrize(("what", "body"), BAD, ids=[what for what, _ in BAD])
async def test_what_makes_no_sense_is_refused_and_changes_nothing(
    web: Emulator, what: str, body: dict[str, Any]
) -> None:
    before = await everything(web)

    for method, path in (("PUT", WEB), ("PATCH", WEB), ("PUT", f"{SETS}/other")):
        if (what, path) == ("more than a placement group", f"{SETS}/other"):
            continue  # A new set of that size has several placement groups.
        status, code, message = await web.refused(method, path, body)

        assert (status, code) == (400, "InvalidParameter"), message
    assert await everything(web) == before


@pytest.mark.parametrize(
    ("body", "target"),
    [
        ({"location": "elsewhere"}, "location"),
        ({"properties": {"orchestrationMode": "Flexible", "singlePlacementGroup": False}}, "orch"),
        (profile(priority="Spot", scheduledEventsProfile=None), "priority"),
    ],
)
async def test_what_a_set_is_stays(web: Emulator, body: dict[str, Any], target: str) -> None:
    before = await everything(web)

    status, code, message = await web.refused("PUT", WEB, body)

    assert (status, code) == (409, "PropertyChangeNotAllowed")
    assert target in message
    assert await everything(web) == before


async def test_several_placement_groups_do_not_become_one(arm: Emulator) -> None:
    await arm.good("PUT", WEB, a_set(singlePlacementGroup=False))

    refused = await arm.refused("PUT", WEB, {"properties": {"singlePlacementGroup": True}})

    assert refused[:2] == (409, "PropertyChangeNotAllowed")
    # As templates have it: null means as it is.
    await arm.good("PUT", WEB, {"properties": {"singlePlacementGroup": None}})
    assert (await arm.good("GET", WEB))["properties"]["singlePlacementGroup"] is False


async def test_spot_vms_get_no_terminate_notification(arm: Emulator) -> None:
    body = terminate(enable=True)
    body["properties"]["virtualMachineProfile"]["priority"] = "Spot"

    refused = await arm.refused("PUT", WEB, body)

    assert refused[:2] == (400, "InvalidParameter")
    assert "Spot" in refused[2]


@pytest.mark.parametrize("name", ["-web", "web-", "we b", "x" * 65, "wéb"])
async def test_a_bad_name_is_refused(arm: Emulator, name: str) -> None:
    refused = await arm.refused("PUT", f"{SETS}/{name}", a_set())

    assert refused[:2] == (400, "InvalidParameter")


async def test_a_set_needs_a_group(arm: Emulator) -> None:
    path = WEB.replace("rg1", "nowhere")

    for method in ("PUT", "PATCH", "GET"):
        refused = await arm.refused(method, path, a_set())

        assert refused[:2] == (404, "ResourceGroupNotFound")


async def test_names_of_sets_are_unique_in_a_fleet(web: Emulator) -> None:
    await web.good("PUT", GROUP.replace("rg1", "rg2"), {"location": "local"})

    refused = await web.refused("PUT", WEB.replace("rg1", "rg2"), a_set())

    assert refused[:2] == (409, "Conflict")


@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_a_set_that_is_not_there_is_not_found(arm: Emulator, method: str) -> None:
    refused = await arm.refused(method, WEB, {})

    assert refused[:2] == (404, "ResourceNotFound")
    assert WEB in refused[2]
