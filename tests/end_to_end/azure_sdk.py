"""The Azure SDKs for Python, pointed at a server of ours as `forewarned env python` has it."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from azure.identity import ManagedIdentityCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.compute import models as compute_models
from azure.mgmt.maintenance import MaintenanceManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

from tests.end_to_end.az import exported
from tests.end_to_end.server_process import Server, serving

GROUP: Final = "sdk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    server: Server
    compute: ComputeManagementClient
    resources: ResourceManagementClient
    maintenance: MaintenanceManagementClient

    def document(self, vm: str) -> Any:
        return self.server.get(path(vm)).json

    def events(self, vm: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document(vm)["Events"]
        return found

    def step(self, span: str) -> None:
        self.server.call("POST", "/v1/clock/step", {"by": span})

    def make_vm(self, name: str, **properties: object) -> str:
        parameters = compute_models.VirtualMachine({"location": "local", "properties": properties})
        self.compute.virtual_machines.begin_create_or_update(GROUP, name, parameters).result()
        return name

    def make_set(self, name: str, capacity: int, **properties: object) -> str:
        described = {
            "location": "local",
            "sku": {"name": "Standard_D2s_v5", "capacity": capacity},
            "properties": {
                "orchestrationMode": "Uniform",
                "upgradePolicy": {"mode": "Manual"},
                "virtualMachineProfile": {},
            }
            | properties,
        }
        self.compute.virtual_machine_scale_sets.begin_create_or_update(
            GROUP, name, compute_models.VirtualMachineScaleSet(described)
        ).result()
        return name


def path(vm: str) -> str:
    return f"/vm/{vm}/metadata/scheduledevents?api-version=2020-07-01"


def terminate_profile(minutes: int, *, enable: bool = True) -> dict[str, Any]:
    profile = {"enable": enable, "notBeforeTimeout": f"PT{minutes}M"}
    return {"scheduledEventsProfile": {"terminateNotificationProfile": profile}}


@contextlib.contextmanager
def sdk(folder: Path) -> Iterator[Sdk]:
    """A fresh server with its clock paused, a client for each part of it, and a resource group."""
    with (
        serving(folder) as server,
        pytest.MonkeyPatch.context() as environment,
    ):
        for name, value in exported("python", folder, server).items():
            environment.setenv(name, value)
        with clients(server) as made:
            made.resources.resource_groups.create_or_update(GROUP, {"location": "local"})
            yield made


@contextlib.contextmanager
def clients(server: Server) -> Iterator[Sdk]:
    arm = os.environ["FOREWARNED_ARM_URL"]
    [subscription, *_] = server.ask_arm("GET", "/subscriptions?api-version=2022-12-01").json[
        "value"
    ]
    subscription_id = subscription["subscriptionId"]
    scopes = [f"{arm}/.default"]
    with (
        ManagedIdentityCredential() as credential,
        ComputeManagementClient(
            credential, subscription_id, base_url=arm, credential_scopes=scopes, polling_interval=1
        ) as compute,
        ResourceManagementClient(
            credential, subscription_id, base_url=arm, credential_scopes=scopes, polling_interval=1
        ) as resources,
        MaintenanceManagementClient(
            credential, subscription_id, base_url=arm, credential_scopes=scopes
        ) as maintenance,
    ):
        yield Sdk(server=server, compute=compute, resources=resources, maintenance=maintenance)
