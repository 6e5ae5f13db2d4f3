"""What a deployment would do, told without doing it."""

from typing import Any, Final

import pytest

from tests.control.arm.emulator import COMPUTE, GROUP, Emulator
from tests.control.arm.sets import everything

ONE: Final = f"{GROUP}/providers/Microsoft.Resources/deployments/d1"
A1: Final = f"{COMPUTE}/availabilitySets/a1"
A2: Final = f"{COMPUTE}/availabilitySets/a2"
W: Final = f"{COMPUTE}/virtualMachineScaleSets/w"


def a_set(name: str, **tags: str) -> dict[str, Any]:
    return {
        "type": "Microsoft.Compute/availabilitySets",
        "apiVersion": "2024-11-01",
        "name": name,
        "tags": tags,
    }


def scale_set(capacity: int) -> dict[str, Any]:
    return {
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "apiVersion": "2024-11-01",
        "name": "w",
        "sku": {"name": "Standard_D2s_v5", "capacity": capacity},
        "properties": {"orchestrationMode": "Uniform", "upgradePolicy": {"mode": "Manual"}},
    }


def deployment(*resources: dict[str, Any], **properties: Any) -> dict[str, Any]:
    template = {"contentVersion": "1.0.0.0", "resources": list(resources)}
    return {"properties": {"mode": "Incremental", "template": template, **properties}}


def by_id(answer: Any) -> dict[str, Any]:
    return {each["resourceId"]: each for each in answer["properties"]["changes"]}


async def test_each_resource_is_said_to_be_made_changed_left_or_not_looked_at(
    arm: Emulator,
) -> None:
    await arm.good("PUT", ONE, deployment(a_set("a1"), a_set("a2", team="red"), scale_set(2)))
    await arm.good("PUT", f"{COMPUTE}/availabilitySets/other", {"location": "local"})
    was = await everything(arm)

    body = deployment(a_set("a1"), a_set("a2", team="blue"), a_set("new"), scale_set(3))
    answer = await arm.good("POST", f"{ONE}/whatIf", body)

    changes = by_id(answer)
    assert answer["status"] == "Succeeded"
    assert {path.rpartition("/")[2]: each["changeType"] for path, each in changes.items()} == {
        "a1": "NoChange",
        "a2": "Modify",
        "w": "Modify",
        "new": "Create",
        "other": "Ignore",
    }
    assert [(each["path"], each["before"], each["after"]) for each in changes[A2]["delta"]] == [
        ("tags.team", "red", "blue")
    ]
    assert [(each["path"], each["before"], each["after"]) for each in changes[W]["delta"]] == [
        ("sku.capacity", 2, 3)
    ]
    assert await everything(arm) == was


async def test_the_ids_alone_are_told_where_no_more_is_wanted(arm: Emulator) -> None:
    settings = {"resultFormat": "ResourceIdOnly"}

    answer = await arm.good(
        "POST", f"{ONE}/whatIf", deployment(a_set("a1"), whatIfSettings=settings)
    )

    assert answer["properties"]["changes"] == [{"resourceId": A1, "changeType": "Create"}]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (deployment({"type": "Microsoft.Sql/servers", "name": "s"}), "does not support"),
        (deployment(mode="Complete"), "the mode 'Complete' is not supported"),
        ({"properties": {}}, "properties.template must contain the template"),
    ],
)
async def test_what_is_wrong_is_told_where_az_can_read_it(
    arm: Emulator, body: Any, words: str
) -> None:
    answer = await arm.good("POST", f"{ONE}/whatIf", body)

    assert answer["status"] == "Failed"
    assert words in answer["error"]["message"]
