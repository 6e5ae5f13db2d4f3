"""How clients find their way: the cloud's endpoints, subscriptions, locations, providers."""

from typing import Final

from forewarned.control.arm import subscriptions
from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.errors import not_found
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import (
    SUBSCRIPTION,
    Content,
    Operation,
    open_read,
    read,
    read_fixed,
    telling,
)
from forewarned.control.arm.services import ArmServices
from forewarned.security.identities import TENANT_ID, Role
from forewarned.service.azure.resource_ids import same
from forewarned.service.ports import Snapshot

API_VERSIONS: Final = ("2026-04-01", "2024-11-01", "2024-07-01", "2022-11-01", "2019-03-01")
"""Newest first. Others are accepted, too."""

PROVIDERS: Final = {
    "Microsoft.Compute": (
        "availabilitySets",
        "images",
        "locations",
        "locations/operations",
        "locations/publishers",
        "locations/usages",
        "locations/vmSizes",
        "virtualMachines",
        "virtualMachineScaleSets",
        "virtualMachineScaleSets/virtualMachines",
    ),
    "Microsoft.Maintenance": ("scheduledevents",),
    "Microsoft.Network": (
        "loadBalancers",
        "networkInterfaces",
        "networkSecurityGroups",
        "publicIPAddresses",
        "virtualNetworks",
    ),
    "Microsoft.Resources": ("deployments", "resourceGroups", "subscriptions", "tenants"),
}


def describe_cloud(asked: Asked) -> ArmAnswer:
    return ok(
        {
            "name": "forewarned",
            "resourceManager": asked.root,
            "authentication": {
                "loginEndpoint": asked.root,
                "audiences": [asked.root],
                "tenant": TENANT_ID,
                "identityProvider": "AAD",
            },
            "vmImageAliasDoc": f"{asked.root}/aliases.json",
            "suffixes": {},
        }
    )


def list_tenants(_: Asked) -> ArmAnswer:
    tenant = {
        "id": f"/tenants/{TENANT_ID}",
        "tenantId": TENANT_ID,
        "displayName": "Forewarned",
        "tenantCategory": "Home",
    }
    return ok({"value": [tenant]})


# --- subscriptions -------------------------------------------------------------------------------


async def list_subscriptions(services: ArmServices, _: Asked) -> ArmAnswer:
    found = await services.engine.ask(lambda snapshot: subscriptions.known(snapshot, services))
    return ok({"value": [_subscription(each) for each in found]})


def show_subscription(asked: Asked) -> ArmAnswer:
    return ok(_subscription(asked.path["subscription"]))


def _subscription(id_: str) -> dict[str, object]:
    return {
        "id": f"/subscriptions/{id_}",
        "subscriptionId": id_,
        "tenantId": TENANT_ID,
        "displayName": "Forewarned",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "subscriptionPolicies": {"spendingLimit": "Off"},
    }


def list_locations(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    subscription, names = asked.path["subscription"], groups.locations(snapshot, asked)
    return ok({"value": [_location(subscription, name) for name in names]})


def _location(subscription: str, name: str) -> dict[str, object]:
    return {
        "id": f"/subscriptions/{subscription}/locations/{name}",
        "name": name,
        "type": "Region",
        "displayName": name,
        "regionalDisplayName": name,
        "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
    }


# --- providers -----------------------------------------------------------------------------------


def list_providers(asked: Asked) -> ArmAnswer:
    return ok({"value": [_provider(asked, name) for name in PROVIDERS]})


def show_provider(asked: Asked) -> ArmAnswer:
    """Also the answer to registering one: all are registered."""
    wanted = asked.path["namespace"]
    for name in PROVIDERS:
        if same(name, wanted):
            return ok(_provider(asked, name))
    raise not_found(
        "InvalidResourceNamespace",
        f"The resource namespace '{wanted[:80]}' is invalid: this server supports "
        f"{', '.join(PROVIDERS)}.",
    )


def _provider(asked: Asked, name: str) -> dict[str, object]:
    return {
        "id": f"/subscriptions/{asked.path['subscription']}/providers/{name}",
        "namespace": name,
        "registrationState": "Registered",
        "registrationPolicy": "RegistrationFree",
        "resourceTypes": [
            {
                "resourceType": each,
                "locations": [asked.context.location],
                "apiVersions": API_VERSIONS,
                "capabilities": "None",
            }
            for each in PROVIDERS[name]
        ],
    }


_PROVIDER: Final = f"{SUBSCRIPTION}/providers/{{namespace}}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    open_read("/metadata/endpoints", describe_cloud),
    read_fixed("/tenants", list_tenants),
    Operation(method="GET", path="/subscriptions", answer=list_subscriptions, needs=Role.READER),
    read_fixed(SUBSCRIPTION, show_subscription),
    read(f"{SUBSCRIPTION}/locations", list_locations),
    read_fixed(f"{SUBSCRIPTION}/providers", list_providers),
    read_fixed(_PROVIDER, show_provider),
    Operation(
        method="POST",
        path=f"{_PROVIDER}/register",
        answer=telling(show_provider),
        needs=Role.ADMIN,
        content=Content.OPTIONAL,
    ),
)
