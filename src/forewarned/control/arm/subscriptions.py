"""Which subscriptions there are: the server's own, and those that a fleet has VMs in."""

import re
from typing import Final

from forewarned.control.arm.errors import bad_request, not_found
from forewarned.control.arm.services import ArmServices
from forewarned.service.azure.resource_ids import same, subscription_path
from forewarned.service.ports import Snapshot

_GUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def known(snapshot: Snapshot, services: ArmServices) -> list[str]:
    """Each once, the server's own first."""
    found = {services.subscription_id.casefold(): services.subscription_id}
    for place in snapshot.resource_groups():
        found.setdefault(place.subscription_id.casefold(), place.subscription_id)
    for declaration in snapshot.declarations("/subscriptions/"):
        subscription = declaration.path.split("/")[2]
        found.setdefault(subscription.casefold(), subscription)
    return list(found.values())


async def require(services: ArmServices, subscription: str) -> None:
    """Raises ArmError for a malformed or unknown subscription."""
    if not _GUID.fullmatch(subscription):
        raise bad_request(
            "InvalidSubscriptionId",
            f"The provided subscription identifier '{subscription[:80]}' is malformed or invalid.",
        )
    if same(subscription, services.subscription_id):
        return
    if not await services.engine.ask(lambda snapshot: _is_known(snapshot, subscription)):
        raise not_found(
            "SubscriptionNotFound",
            f"The subscription '{subscription}' could not be found. This server's subscription is"
            f" '{services.subscription_id}'.",
        )


def _is_known(snapshot: Snapshot, subscription: str) -> bool:
    return any(
        same(each.subscription_id, subscription) for each in snapshot.resource_groups()
    ) or any(True for _ in snapshot.declarations(f"{subscription_path(subscription)}/"))
