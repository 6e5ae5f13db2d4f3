"""What came of a deployment: its operations, and its template as it can be exported."""

from typing import Any, Final

from tests.control.arm.emulator import COMPUTE, GROUP, Emulator
from tests.control.arm.templates.test_what_if import a_set, deployment

ONE: Final = f"{GROUP}/providers/Microsoft.Resources/deployments/d1"
OPERATIONS: Final = f"{GROUP}/deployments/d1/operations"
BALANCER: Final = {"type": "Microsoft.Network/loadBalancers", "name": "lb"}
RULE: Final = {
    "type": "Microsoft.Network/loadBalancers/inboundNatRules",
    "name": "lb/ssh",
    "dependsOn": ["lb"],
}


async def test_a_deployment_has_an_operation_for_each_resource_and_one_for_its_outputs(
    arm: Emulator,
) -> None:
    await arm.good("PUT", ONE, deployment(a_set("a1"), BALANCER, RULE))

    listed = (await arm.good("GET", OPERATIONS))["value"]
    first = await arm.good("GET", f"{OPERATIONS}/{listed[0]['operationId'].lower()}")

    targets: list[Any] = [each["properties"].get("targetResource") for each in listed]
    assert first == listed[0]
    assert {each["properties"]["provisioningState"] for each in listed} == {"Succeeded"}
    assert {(each["resourceType"], each["resourceName"]) for each in targets if each} == {
        ("Microsoft.Compute/availabilitySets", "a1"),
        ("Microsoft.Network/loadBalancers", "lb"),
        ("Microsoft.Network/loadBalancers/inboundNatRules", "lb/ssh"),
    }
    assert f"{COMPUTE}/availabilitySets/a1" in {each["id"] for each in targets if each}
    assert targets.count(None) == 1


async def test_the_operation_of_a_failed_deployment_says_what_was_wrong(arm: Emulator) -> None:
    await arm.good("PUT", ONE, deployment(a_set("a1", team="x" * 300)))

    [failed] = (await arm.good("GET", OPERATIONS))["value"]

    assert failed["properties"]["provisioningState"] == "Failed"
    assert "tags.team" in failed["properties"]["statusMessage"]["error"]["message"]
    assert (await arm.refused("GET", f"{OPERATIONS}/nothing"))[0] == 404


async def test_a_template_is_exported_as_it_was_sent_and_shown_nowhere_else(
    arm: Emulator,
) -> None:
    body = deployment(a_set("a1"))
    await arm.good("PUT", ONE, body)

    exported = await arm.good("POST", f"{ONE}/exportTemplate")
    shown = await arm.good("GET", ONE)

    assert exported == {"template": body["properties"]["template"]}
    assert "template" not in shown["properties"]
    assert (await arm.refused("POST", f"{ONE}s/exportTemplate"))[0] == 404
