"""What clients may not write of a VM: each refused by name, and nothing is changed."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.control.arm.asking import VERSION
from tests.control.arm.declared_machines import FULL, PLAIN, VMS, WEB
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator, emulator

SET: Final = f"{COMPUTE}/availabilitySets/db"
FLEXIBLE: Final = f"{COMPUTE}/virtualMachineScaleSets/flex"
UNIFORM: Final = f"{COMPUTE}/virtualMachineScaleSets/uniform"


@pytest.fixture
async def cloud(anyio_backend: object) -> AsyncIterator[Emulator]:
    """With an availability set, a Flexible scale set and a Uniform one."""
    async with emulator() as running:
        await running.good("PUT", SET, {})
        for path, mode in ((FLEXIBLE, "Flexible"), (UNIFORM, "Uniform")):
            body = {"sku": {"name": "S", "capacity": 0}, "properties": {"orchestrationMode": mode}}
            await running.good("PUT", path, body)
        yield running


def of(**properties: object) -> Any:
    return {"properties": properties}


def terminate(profile: object) -> Any:
    return of(scheduledEventsProfile={"terminateNotificationProfile": profile})


def policy(name: str, value: object) -> Any:
    return of(scheduledEventsPolicy={name: value})


BAD_TIMEOUTS: Final[list[Any]] = ["PT4M59S", "PT15M1S", "PT99M", "10m", "ten", "", 10, []]
SENSELESS: Final[list[tuple[Any, str | None]]] = [
    ({"location": 5}, "location"),
    ({"location": {}}, "location"),
    ({"location": "a/b"}, "location"),
    ({"tags": "a"}, "tags"),
    ({"tags": ["a"]}, "tags"),
    ({"tags": {"a": 1}}, "tags.a"),
    ({"tags": {"a": {}}}, "tags.a"),
    ({"tags": {str(number): "" for number in range(51)}}, "tags"),
    ({"zones": "1"}, "zones"),
    ({"zones": [1]}, "zones"),
    ({"zones": ["1", "2"]}, "zones"),
    ({"zones": ["../1"]}, "zones"),
    ({"properties": []}, "properties"),
    ({"properties": "all"}, "properties"),
    (of(hardwareProfile="big"), "properties.hardwareProfile"),
    (of(hardwareProfile={"vmSize": 4}), "properties.hardwareProfile.vmSize"),
    (of(hardwareProfile={"vmSize": "a\nb"}), "properties.hardwareProfile.vmSize"),
    (of(storageProfile=[]), "properties.storageProfile"),
    (of(storageProfile={"osDisk": 1}), "properties.storageProfile.osDisk"),
    (of(storageProfile={"osDisk": {"osType": "BeOS"}}), "properties.storageProfile.osDisk.osType"),
    (of(storageProfile={"osDisk": {"osType": 1}}), "properties.storageProfile.osDisk.osType"),
    (of(osProfile="x"), "properties.osProfile"),
    (of(osProfile={"computerName": []}), "properties.osProfile.computerName"),
    (of(osProfile={"computerName": "x" * 65}), "properties.osProfile.computerName"),
    (of(priority="Urgent"), "properties.priority"),
    (of(priority=1), "properties.priority"),
    (of(priority="Spot", evictionPolicy="Burn"), "properties.evictionPolicy"),
    (of(priority="Spot", evictionPolicy=True), "properties.evictionPolicy"),
    (of(evictionPolicy="Delete"), None),
    (of(availabilitySet="db"), "properties.availabilitySet"),
    (of(availabilitySet={"id": 1}), "properties.availabilitySet.id"),
    (of(availabilitySet={"id": "db"}), "properties.availabilitySet.id"),
    (of(availabilitySet={"id": FLEXIBLE}), "properties.availabilitySet.id"),
    (of(availabilitySet={"id": SET.replace("/rg1/", "/x/")}), "properties.availabilitySet.id"),
    (of(virtualMachineScaleSet=[]), "properties.virtualMachineScaleSet"),
    (of(virtualMachineScaleSet={"id": SET}), "properties.virtualMachineScaleSet.id"),
    (of(virtualMachineScaleSet={"id": UNIFORM}), None),
    (
        of(availabilitySet={"id": SET}, virtualMachineScaleSet={"id": FLEXIBLE}),
        "properties.availabilitySet",
    ),
    ({"zones": ["1"], **of(availabilitySet={"id": SET})}, "properties.availabilitySet"),
    (of(scheduledEventsProfile=1), "properties.scheduledEventsProfile"),
    (
        terminate("PT5M"),
        "properties.scheduledEventsProfile.terminateNotificationProfile",
    ),
    *[
        (
            terminate({"enable": True, "notBeforeTimeout": timeout}),
            "properties.scheduledEventsProfile.terminateNotificationProfile.notBeforeTimeout",
        )
        for timeout in BAD_TIMEOUTS
    ],
    (
        terminate({"enable": "perhaps"}),
        "properties.scheduledEventsProfile.terminateNotificationProfile.enable",
    ),
    (
        {"properties": terminate({"enable": True})["properties"] | {"priority": "Spot"}},
        "properties.scheduledEventsProfile.terminateNotificationProfile.enable",
    ),
    (
        of(scheduledEventsProfile={"osImageNotificationProfile": {"notBeforeTimeout": "PT5M"}}),
        "properties.scheduledEventsProfile.osImageNotificationProfile.notBeforeTimeout",
    ),
    (of(scheduledEventsPolicy=[]), "properties.scheduledEventsPolicy"),
    (
        policy("userInitiatedReboot", True),
        "properties.scheduledEventsPolicy.userInitiatedReboot",
    ),
    (
        policy("userInitiatedRedeploy", {"automaticallyApprove": 1}),
        "properties.scheduledEventsPolicy.userInitiatedRedeploy.automaticallyApprove",
    ),
    (
        policy("allInstancesDown", {"automaticallyApprove": []}),
        "properties.scheduledEventsPolicy.allInstancesDown.automaticallyApprove",
    ),
]


@pytest.mark.parametrize(("body", "target"), SENSELESS)
async def test_what_makes_no_sense_is_refused(
    cloud: Emulator, body: Any, target: str | None
) -> None:
    refused = await cloud.ask("PUT", WEB, body)

    assert refused.status_code == 400, refused.text
    error = refused.json()["error"]
    assert (error["code"], error.get("target")) == ("InvalidParameter", target)
    assert await cloud.binding("web") is None
    assert (await cloud.refused("GET", WEB))[0] == 404

    before = await cloud.good("PUT", WEB, FULL)
    for method in ("PUT", "PATCH"):
        assert (await cloud.refused(method, WEB, body))[0] in {400, 409}
        assert await cloud.good("GET", WEB) == before


@pytest.mark.parametrize(
    "body",
    [
        {"location": "elsewhere"},
        {"zones": ["1"]},
        {"zones": None},
        of(priority="Spot"),
        of(osProfile={"computerName": "another"}),
        of(virtualMachineScaleSet={"id": FLEXIBLE}),
    ],
)
async def test_what_was_settled_when_it_was_made_stays(cloud: Emulator, body: Any) -> None:
    before = await cloud.good("PUT", WEB, FULL)
    if "virtualMachineScaleSet" in body.get("properties", {}):
        body = {"properties": body["properties"] | {"scheduledEventsPolicy": None}}

    assert (await cloud.refused("PUT", WEB, body))[:2] == (409, "PropertyChangeNotAllowed")

    assert await cloud.good("GET", WEB) == before


async def test_an_availability_set_must_be_there(cloud: Emulator) -> None:
    body = of(availabilitySet={"id": f"{SET}x"})

    assert (await cloud.refused("PUT", WEB, body))[:2] == (404, "ResourceNotFound")

    assert await cloud.binding("web") is None


async def test_a_resource_group_must_be_there(cloud: Emulator) -> None:
    path = WEB.replace("/rg1/", "/no/")

    assert (await cloud.refused("PUT", path, PLAIN))[:2] == (404, "ResourceGroupNotFound")
    assert (await cloud.refused("GET", path))[:2] == (404, "ResourceGroupNotFound")
    assert (await cloud.refused("PATCH", path, PLAIN))[:2] == (404, "ResourceGroupNotFound")
    for word in ("restart", "simulateEviction", "reapply"):
        refused = await cloud.refused("POST", f"{path}/{word}")
        assert refused[:2] == (404, "ResourceGroupNotFound")


@pytest.mark.parametrize("name", ["-web", "web.", "a b", "é", "x" * 65, "a:b", "*"])
async def test_a_name_must_be_one(cloud: Emulator, name: str) -> None:
    assert (await cloud.refused("PUT", f"{VMS}/{name}", PLAIN))[:2] == (400, "InvalidParameter")


async def test_no_two_vms_of_a_fleet_have_the_same_name(cloud: Emulator) -> None:
    other = GROUP.replace("/rg1", "/rg2")
    await cloud.good("PUT", other, {"location": "local"})
    await cloud.good("PUT", WEB, PLAIN)

    path = f"{other}/providers/Microsoft.Compute/virtualMachines/WEB"

    assert (await cloud.refused("PUT", path, PLAIN))[:2] == (409, "Conflict")
    assert (await cloud.refused("GET", path))[0] == 404


async def test_an_old_version_does_not_know_the_profile(cloud: Emulator) -> None:
    body = terminate({"enable": True})

    old = await cloud.refused("PUT", f"{WEB}?api-version=2018-10-01", body)

    assert old[:2] == (400, "BadRequest")
    assert "Could not find member 'scheduledEventsProfile'" in old[2]
    assert await cloud.binding("web") is None
    await cloud.good("PUT", f"{WEB}?api-version={VERSION}", body)
