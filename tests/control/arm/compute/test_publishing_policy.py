"""`scheduledEventsAdditionalPublishingTargets`: what a resource declares, its scope has."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from forewarned.core.model import Policy
from tests.control.arm.declared_machines import WEB
from tests.control.arm.emulator import COMPUTE, Emulator, emulator

SET: Final = f"{COMPUTE}/availabilitySets/db"
SCALE_SET: Final = f"{COMPUTE}/virtualMachineScaleSets/api"
WHERE: Final = (
    "properties.scheduledEventsPolicy.scheduledEventsAdditionalPublishingTargets"
    ".eventGridAndResourceGraph"
)

# A resource, and a VM of its scope.
RESOURCES: Final = pytest.mark.parametrize(
    ("path", "vm"), [(WEB, "web"), (SET, "db-0"), (SCALE_SET, "api_0")]
)


@pytest.fixture
async def cloud(anyio_backend: object) -> AsyncIterator[Emulator]:
    async with emulator() as running:
        yield running


def publishing(grid: object) -> dict[str, Any]:
    targets = {"eventGridAndResourceGraph": grid}
    return {"scheduledEventsPolicy": {"scheduledEventsAdditionalPublishingTargets": targets}}


async def put(cloud: Emulator, path: str, **properties: object) -> Any:
    body: dict[str, Any] = {"location": "local", "properties": properties}
    if path == SCALE_SET:
        body["sku"] = {"name": "Standard_D2s_v5", "capacity": 1}
        properties["virtualMachineProfile"] = {}
    shown = await cloud.good("PUT", path, body)
    if path == SET:
        member = {"properties": {"availabilitySet": {"id": SET}}}
        await cloud.good("PUT", f"{COMPUTE}/virtualMachines/db-0", member)
    return shown["properties"].get("scheduledEventsPolicy")


async def version_of(cloud: Emulator, vm: str) -> str | None:
    """As the scope of a VM has it, and so what is written of its events."""
    binding = await cloud.binding(vm)
    assert binding is not None
    scope = await cloud.use_cases.engine.ask(lambda snapshot: snapshot.load(binding.scope_id))
    publishing = scope.policy.publishing
    return publishing.api_version if publishing.enabled else None


@RESOURCES
async def test_what_is_declared_is_shown_and_the_scopes(
    cloud: Emulator, path: str, vm: str
) -> None:
    declared = publishing({"enable": True, "scheduledEventsApiVersion": "2019-08-01"})

    shown = await put(cloud, path, **declared)

    assert shown == declared["scheduledEventsPolicy"]
    assert await version_of(cloud, vm) == "2019-08-01"


@RESOURCES
@pytest.mark.parametrize(
    ("grid", "version"),
    [
        ({"enable": True}, "2020-07-01"),
        ({"enable": "true"}, "2020-07-01"),
        ({"enable": False, "scheduledEventsApiVersion": "2020-07-01"}, None),
        ({"scheduledEventsApiVersion": "2020-07-01"}, None),
        ({}, None),
        (None, None),
    ],
)
async def test_only_what_is_enabled_is_published_by_default_in_the_newest_version(
    cloud: Emulator, path: str, vm: str, grid: object, version: str | None
) -> None:
    await put(cloud, path, **publishing(grid))

    assert await version_of(cloud, vm) == version


@RESOURCES
async def test_it_can_be_turned_off_again(cloud: Emulator, path: str, vm: str) -> None:
    await put(cloud, path, **publishing({"enable": True}))

    shown = await cloud.good("PATCH", path, {"properties": publishing({"enable": False})})

    assert await version_of(cloud, vm) is None
    assert (
        shown["properties"]["scheduledEventsPolicy"]
        == publishing({"enable": False})["scheduledEventsPolicy"]
    )


@RESOURCES
@pytest.mark.parametrize(
    ("grid", "where"),
    [
        ([], WHERE),
        ({"enable": "perhaps"}, f"{WHERE}.enable"),
        ({"scheduledEventsApiVersion": "2021-01-01"}, f"{WHERE}.scheduledEventsApiVersion"),
        ({"enable": True, "scheduledEventsApiVersion": 7}, f"{WHERE}.scheduledEventsApiVersion"),
    ],
)
async def test_an_unknown_version_is_refused_and_changes_nothing(
    cloud: Emulator, path: str, vm: str, grid: object, where: str
) -> None:
    await put(cloud, path, **publishing({"enable": True}))
    before = await cloud.good("GET", path)

    status, code, message = await cloud.refused("PATCH", path, {"properties": publishing(grid)})

    assert (status, code) == (400, "InvalidParameter")
    assert f"'{where}'" in message
    assert await cloud.good("GET", path) == before
    assert await version_of(cloud, vm) == "2020-07-01"


async def test_a_refused_version_is_answered_with_those_there_are(cloud: Emulator) -> None:
    wrong = publishing({"enable": True, "scheduledEventsApiVersion": "2021-01-01"})

    _, _, message = await cloud.refused("PUT", WEB, {"location": "local", "properties": wrong})

    assert "expected one of 2017-03-01, 2017-08-01," in message
    assert message.endswith("2019-08-01, 2020-07-01.")


async def test_a_vm_of_a_set_publishes_as_the_set_does(cloud: Emulator) -> None:
    await put(cloud, SET, **publishing({"enable": True}))

    refused = await cloud.refused(
        "PATCH",
        f"{COMPUTE}/virtualMachines/db-0",
        {"properties": publishing({"enable": False})},
    )

    assert refused[:2] == (400, "InvalidParameter")
    assert await version_of(cloud, "db-0") == "2020-07-01"


def test_nothing_is_published_by_default() -> None:
    assert not Policy().publishing.enabled
