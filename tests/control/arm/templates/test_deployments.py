"""Deployments: templates as `az` sends them, made as a whole or not at all."""

from pathlib import Path
from typing import Any, Final

import pytest

from forewarned.control.arm.templates import deployments
from forewarned.service.listings import HistoryFilter, HistoryRow
from tests.builders import MINUTE
from tests.control.arm.asking import ROOT
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator, emulator

DEPLOYMENTS: Final = f"{GROUP}/providers/Microsoft.Resources/deployments"
ONE: Final = f"{DEPLOYMENTS}/vmss_deploy_1"
SET: Final = f"{COMPUTE}/virtualMachineScaleSets/u1"
NETWORK: Final = f"{GROUP}/providers/Microsoft.Network"

VNET: Final = {
    "name": "u1VNET",
    "type": "Microsoft.Network/virtualNetworks",
    "location": "local",
    "apiVersion": "2022-01-01",
    "dependsOn": [],
    "tags": {},
    "properties": {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "u1Subnet", "properties": {"addressPrefix": "10.0.0.0/24"}}],
    },
}


def scale_set(**profile: Any) -> dict[str, Any]:
    return {
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "name": "u1",
        "location": "local",
        "tags": {},
        "apiVersion": "2026-04-01",
        "dependsOn": ["Microsoft.Network/virtualNetworks/u1VNET"],
        "properties": {
            "overprovision": True,
            "upgradePolicy": {"mode": "manual"},
            "singlePlacementGroup": None,
            "virtualMachineProfile": {
                "storageProfile": {"imageReference": {"sku": "18.04-LTS"}},
                "osProfile": {
                    "computerNamePrefix": "u1abc",
                    "adminUsername": "azureuser",
                    "adminPassword": "[parameters('adminPassword')]",
                },
                "scheduledEventsProfile": {
                    "terminateNotificationProfile": {
                        "notBeforeTimeout": "PT10M",
                        "enable": "true",
                        **profile,
                    }
                },
            },
        },
        "sku": {"name": "Standard_D2s_v5", "capacity": 2},
    }


def deployment(*resources: dict[str, Any], outputs: Any = None) -> dict[str, Any]:
    """As `az vmss create` sends one."""
    return {
        "properties": {
            "template": {
                "$schema": "https://schema.management.azure.com/schemas/2015-01-01/deploymentTemplate.json#",
                "contentVersion": "1.0.0.0",
                "parameters": {"adminPassword": {"type": "securestring", "metadata": {}}},
                "variables": {},
                "resources": list(resources),
                "outputs": outputs or {},
            },
            "parameters": {"adminPassword": {"value": "hunter2"}},
            "mode": "incremental",
        }
    }


OUTPUTS: Final = {
    "VMSS": {
        "type": "object",
        "value": "[reference(resourceId('Microsoft.Compute/virtualMachineScaleSets', 'u1'),"
        "providers('Microsoft.Compute', 'virtualMachineScaleSets').apiVersions[0])]",
    }
}


async def test_what_az_sends_is_made_and_shown(arm: Emulator) -> None:
    body = deployment(scale_set(), VNET, outputs=OUTPUTS)

    response = await arm.ask("PUT", ONE, body)

    assert response.status_code == 201
    assert response.json()["properties"]["provisioningState"] == "Accepted"
    assert response.headers["Retry-After"] == "1"
    operation = response.headers["Azure-AsyncOperation"].removeprefix(ROOT)
    assert operation.startswith(f"{ONE}/operationStatuses/")
    assert await arm.status(operation) == "Succeeded"
    shown = (await arm.good("GET", ONE))["properties"]
    made = await arm.good("GET", SET)
    assert shown["provisioningState"] == "Succeeded"
    assert shown["outputs"] == {"VMSS": {"type": "Object", "value": made["properties"]}}
    assert shown["outputResources"] == [{"id": f"{NETWORK}/virtualNetworks/u1VNET"}, {"id": SET}]
    assert (made["sku"]["name"], made["sku"]["capacity"]) == ("Standard_D2s_v5", 2)
    assert made["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] == {
        "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT10M"}
    }
    assert await arm.good("GET", f"{NETWORK}/virtualNetworks/u1VNET/subnets/u1Subnet")
    assert [
        each["properties"]["provisioningState"]
        for each in (await arm.good("GET", DEPLOYMENTS))["value"]
    ] == ["Succeeded"]


async def test_nobody_is_shown_a_secure_parameter(arm: Emulator) -> None:
    response = await arm.ask("PUT", ONE, deployment(scale_set(), VNET, outputs=OUTPUTS))

    texts = [response.text]
    texts += [(await arm.ask("GET", path)).text for path in (ONE, DEPLOYMENTS, SET)]
    texts += await arm.use_cases.engine.ask(
        lambda snapshot: [each.document for each in snapshot.declarations("/")]
    )
    assert len(texts) > 6
    assert not any("hunter2" in text for text in texts)
    assert (await arm.good("GET", ONE))["properties"]["parameters"] == {
        "adminPassword": {"type": "SecureString"}
    }


async def test_a_vm_with_its_network_is_made_as_az_vm_create_does(arm: Emulator) -> None:
    nic = {
        "type": "Microsoft.Network/networkInterfaces",
        "name": "vVMNic",
        "apiVersion": "2022-01-01",
        "location": "local",
        "dependsOn": ["Microsoft.Network/virtualNetworks/u1VNET"],
        "properties": {
            "ipConfigurations": [
                {"name": "ipconfigv", "properties": {"privateIPAllocationMethod": "Dynamic"}}
            ]
        },
    }
    vm = {
        "type": "Microsoft.Compute/virtualMachines",
        "name": "v",
        "apiVersion": "2026-04-01",
        "location": "local",
        "dependsOn": ["Microsoft.Network/networkInterfaces/vVMNic"],
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "networkProfile": {
                "networkInterfaces": [{"id": f"{NETWORK}/networkInterfaces/vVMNic"}]
            },
            "osProfile": {"computerName": "v", "adminPassword": "[parameters('adminPassword')]"},
        },
    }

    operation = await arm.begin("PUT", ONE, deployment(vm, nic, VNET))

    assert await arm.status(operation) == "Succeeded"
    binding = await arm.binding("v")
    assert binding is not None
    shown = await arm.good("GET", f"{NETWORK}/networkInterfaces/vVMNic")
    [config] = shown["properties"]["ipConfigurations"]
    assert config["properties"]["privateIPAddress"] == binding.address


async def test_a_rule_of_a_load_balancer_and_an_availability_set_are_made(arm: Emulator) -> None:
    balancer = {"type": "Microsoft.Network/loadBalancers", "name": "lb", "apiVersion": "2022-01-01"}
    rule = {
        "type": "Microsoft.Network/loadBalancers/inboundNatRules",
        "name": "lb/NatRule",
        "apiVersion": "2022-01-01",
        "location": "local",
        "dependsOn": ["[concat('Microsoft.Network/loadBalancers/', 'lb')]"],
        "properties": {
            "frontendIPConfiguration": {
                "id": "[concat(resourceId('Microsoft.Network/loadBalancers', 'lb'), '/frontendIPConfigurations/', 'f')]"
            }
        },
    }
    available = {
        "type": "Microsoft.Compute/availabilitySets",
        "name": "some",
        "apiVersion": "2022-11-01",
        "properties": {"platformFaultDomainCount": 2},
    }

    outputs = {
        "rule": {"type": "object", "value": "[reference('lb/NatRule')]"},
        "sets": {"type": "object", "value": "[reference('some')]"},
        "lb": {"type": "object", "value": "[reference('lb')]"},
    }

    operation = await arm.begin("PUT", ONE, deployment(rule, available, balancer, outputs=outputs))

    assert await arm.status(operation) == "Succeeded"
    shown = await arm.good("GET", f"{NETWORK}/loadBalancers/lb/inboundNatRules/NatRule")
    front = shown["properties"]["frontendIPConfiguration"]["id"]
    assert front == f"{NETWORK}/loadBalancers/lb/frontendIPConfigurations/f"
    given = (await arm.good("GET", ONE))["properties"]["outputs"]
    assert given["rule"]["value"] == shown["properties"]
    assert given["sets"]["value"]["platformFaultDomainCount"] == 2
    assert await arm.good("GET", f"{COMPUTE}/availabilitySets/some")


@pytest.mark.parametrize(
    ("body", "code", "why"),
    [
        (
            deployment(VNET, scale_set(notBeforeTimeout="PT99M")),
            "InvalidParameter",
            "PT5M to PT15M",
        ),
        (deployment(VNET, {**scale_set(), "apiVersion": "2018-06-01"}), "BadRequest", "member"),
        (deployment(VNET, {**scale_set(), "dependsOn": ["x"]}), "InvalidTemplate", "not defined"),
        (
            deployment(VNET, scale_set(), outputs={"a": {"value": "[reference('x')]"}}),
            "InvalidTemplate",
            "'x'",
        ),
        (
            deployment(VNET, {"type": "Microsoft.Storage/storageAccounts", "name": "s"}),
            "InvalidTemplateDeployment",
            "Microsoft.Storage/storageAccounts",
        ),
        (
            deployment(VNET, {"type": "Microsoft.Network/virtualNetworks/odd", "name": "u1VNET/o"}),
            "InvalidTemplateDeployment",
            "odd",
        ),
        (deployment(VNET, {**VNET, "name": "-"}), "InvalidParameter", "name"),
    ],
)
async def test_a_bad_value_is_told_by_the_operation_and_nothing_is_made(
    arm: Emulator, body: Any, code: str, why: str
) -> None:
    before = await _history(arm)

    response = await arm.ask("PUT", ONE, body)

    # Anything but 201 here ends az with a traceback.
    assert response.status_code == 201
    operation = response.headers["Azure-AsyncOperation"].removeprefix(ROOT)
    status = await arm.good("GET", operation)
    assert (status["status"], status["error"]["code"]) == ("Failed", code)
    assert why in status["error"]["message"]
    shown = (await arm.good("GET", ONE))["properties"]
    assert (shown["provisioningState"], shown["error"]) == ("Failed", status["error"])
    assert (await arm.good("GET", f"{GROUP}/resources"))["value"] == []
    assert await _history(arm) == before


async def test_a_deployment_that_makes_a_set_smaller_waits_for_the_vms_that_go(
    arm: Emulator,
) -> None:
    await arm.begin("PUT", ONE, deployment(VNET, scale_set()))
    await arm.read("u1_0")
    smaller = {**scale_set(), "sku": {"name": "Standard_D2s_v5", "capacity": 1}}

    operation = await arm.begin("PUT", ONE, deployment(VNET, smaller))

    assert await arm.status(operation) == "InProgress"
    await arm.approve("u1_0", *await arm.read("u1_0"))
    await arm.step(10 * MINUTE)
    assert await arm.status(operation) == "Succeeded"
    assert (await arm.good("GET", SET))["sku"]["capacity"] == 1


async def test_a_failed_deployment_may_be_sent_again(arm: Emulator) -> None:
    await arm.begin("PUT", ONE, deployment(VNET, scale_set(enable="maybe")))

    response = await arm.ask("PUT", ONE, deployment(VNET, scale_set()))

    assert response.status_code == 200
    assert (await arm.good("GET", ONE))["properties"]["provisioningState"] == "Succeeded"
    assert "error" not in (await arm.good("GET", ONE))["properties"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (ONE, {}, 400),
        (ONE, {"properties": {"template": 7}}, 400),
        (ONE, {"properties": {"templateLink": {}}}, 400),
        (f"{DEPLOYMENTS}/no blank", deployment(VNET), 400),
        (f"{DEPLOYMENTS}/{'x' * 65}", deployment(VNET), 400),
        (ONE.replace("rg1", "none"), deployment(VNET), 404),
    ],
)
async def test_what_is_no_deployment_is_refused_at_once(
    arm: Emulator, path: str, body: object, status: int
) -> None:
    assert (await arm.refused("PUT", path, body))[0] == status

    assert (await arm.good("GET", DEPLOYMENTS))["value"] == []


async def test_validating_makes_nothing(arm: Emulator) -> None:
    before = await _history(arm)

    good = await arm.good("POST", f"{ONE}/validate", deployment(VNET, scale_set(), outputs=OUTPUTS))
    bad = await arm.refused("POST", f"{ONE}/validate", deployment(VNET, scale_set(enable="maybe")))

    assert good["properties"]["provisioningState"] == "Succeeded"
    assert {"id": SET} in good["properties"]["outputResources"]
    assert bad[:2] == (400, "InvalidParameter")
    assert (await arm.good("GET", f"{GROUP}/resources"))["value"] == []
    assert (await arm.refused("GET", ONE))[:2] == (404, "DeploymentNotFound")
    assert await _history(arm) == before


async def test_deployments_are_looked_for_and_deleted_without_what_they_made(arm: Emulator) -> None:
    await arm.begin("PUT", ONE, deployment(VNET))

    there = await arm.ask("HEAD", ONE)
    operation = await arm.begin("DELETE", ONE)
    gone = await arm.ask("HEAD", ONE)

    assert (there.status_code, gone.status_code) == (204, 404)
    assert await arm.status(operation) == "Succeeded"
    assert (await arm.refused("DELETE", ONE))[:2] == (404, "DeploymentNotFound")
    assert await arm.good("GET", f"{NETWORK}/virtualNetworks/u1VNET")


async def test_the_oldest_deployments_are_forgotten(
    arm: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "MOST_KEPT", 2)

    for number in range(4):
        await arm.begin("PUT", f"{DEPLOYMENTS}/d{number}", deployment())

    kept = (await arm.good("GET", DEPLOYMENTS))["value"]
    assert len(kept) == 2
    assert kept[-1]["name"] == "d3"


async def test_a_deployment_survives_a_restart(tmp_path: Path) -> None:
    async with emulator(tmp_path / "store.db") as arm:
        operation = await arm.begin("PUT", ONE, deployment(scale_set(), VNET, outputs=OUTPUTS))
        before = await arm.good("GET", ONE)

        await arm.restart()

        assert await arm.good("GET", ONE) == before
        assert await arm.status(operation) == "Succeeded"


async def _history(arm: Emulator) -> list[HistoryRow]:
    return await arm.use_cases.engine.ask(lambda snapshot: snapshot.history(HistoryFilter()))
