"""How clients find their way: the cloud's endpoints, subscriptions, locations, providers."""

from http import HTTPStatus
from typing import Final

from forewarned.control.arm import subscriptions
from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import Operation, open_read, post, read
from forewarned.control.arm.services import ArmServices
from forewarned.security.identities import TENANT_ID
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


async def describe_cloud(_: ArmServices, asked: Asked) -> ArmAnswer:
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


async def list_tenants(_: ArmServices, __: Asked) -> ArmAnswer:
    tenant = {
        "id": f"/tenants/{TENANT_ID}",
        "tenantId": TENANT_ID,
        "displayName": "Forewarned",
        "tenantCategory": "Home",
    }
    return ok({"value": [tenant]})


# --- subscriptions -------------------------------------------------------------------------------


async def list_subscriptions(services: ArmServices, _: Asked) -> ArmAnswer:
    def question(snapshot: Snapshot) -> list[str]:
        return subscriptions.known(snapshot, services)

    return ok({"value": [_subscription(each) for each in await services.engine.ask(question)]})


async def show_subscription(_: ArmServices, asked: Asked) -> ArmAnswer:
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


async def list_locations(services: ArmServices, asked: Asked) -> ArmAnswer:
    subscription = asked.path["subscription"]
    names = await services.engine.ask(
        lambda snapshot: groups.locations(snapshot, services, subscription)
    )
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


async def list_providers(services: ArmServices, asked: Asked) -> ArmAnswer:
    return ok({"value": [_provider(services, asked, name) for name in PROVIDERS]})


async def show_provider(services: ArmServices, asked: Asked) -> ArmAnswer:
    """Also the answer to registering one: all are registered."""
    wanted = asked.path["namespace"]
    for name in PROVIDERS:
        if name.casefold() == wanted.casefold():
            return ok(_provider(services, asked, name))
    raise ArmError(
        HTTPStatus.NOT_FOUND,
        "InvalidResourceNamespace",
        f"The resource namespace '{wanted[:80]}' is invalid: this server supports "
        f"{', '.join(PROVIDERS)}.",
    )


def _provider(services: ArmServices, asked: Asked, name: str) -> dict[str, object]:
    return {
        "id": f"/subscriptions/{asked.path['subscription']}/providers/{name}",
        "namespace": name,
        "registrationState": "Registered",
        "registrationPolicy": "RegistrationFree",
        "resourceTypes": [
            {
                "resourceType": each,
                "locations": [services.location],
                "apiVersions": API_VERSIONS,
                "capabilities": "None",
            }
            for each in PROVIDERS[name]
        ],
    }


_SUBSCRIPTION: Final = "/subscriptions/{subscription}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    open_read("/metadata/endpoints", describe_cloud),
    read("/tenants", list_tenants),
    read("/subscriptions", list_subscriptions),
    read(_SUBSCRIPTION, show_subscription),
    read(f"{_SUBSCRIPTION}/locations", list_locations),
    read(f"{_SUBSCRIPTION}/providers", list_providers),
    read(f"{_SUBSCRIPTION}/providers/{{namespace}}", show_provider),
    post(f"{_SUBSCRIPTION}/providers/{{namespace}}/register", show_provider),
)
