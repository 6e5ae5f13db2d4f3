"""A person's wishes for a scale set in ARM's words, as if their client had sent them."""

from collections.abc import Sequence
from typing import Final

from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.models.profiles import show_duration
from forewarned.control.arm.models.scale_set_views import Models
from forewarned.control.arm.models.scale_set_wire import (
    VM_PROFILE,
    document_of,
    image_of,
    read_model,
    refuse_name,
    wanted_set,
)
from forewarned.control.arm.models.vm_wire import is_flexible
from forewarned.control.arm.requests import Json
from forewarned.control.arm.resources.groups import new_group
from forewarned.service.azure.inventory import Machine, ScaleSetView
from forewarned.service.azure.scale_sets import Upgrade, WantedSet
from forewarned.service.azure.set_changes import BadWishError, SetWish
from forewarned.service.fleet.declaration import Model
from forewarned.service.ports import Snapshot

_FIELDS: Final = {
    "vmScaleSetName": "name",
    "resourceGroupName": "new_group",
    "sku.capacity": "capacity",
    "sku.name": "size",
    "notBeforeTimeout": "delay",
    "enable": "notified",
    "priority": "spot",
    "singlePlacementGroup": "capacity",
}


class ArmWishes:
    """Reads wishes by the same rules as what `az` sends."""

    def model(self, view: ScaleSetView) -> Model:
        return read_model(document_of(view))

    def new_group(self, name: str, location: str) -> str:
        try:
            return new_group(name, location)
        except ArmError as error:
            raise BadWishError(error.message, field=_field(error.target or "")) from error

    def is_flexible(self, view: ScaleSetView) -> bool:
        return is_flexible(view)

    def wanted(
        self, view: ScaleSetView | None, wish: SetWish, *, name: str, location: str
    ) -> WantedSet:
        try:
            if view is None:
                refuse_name(name)
            return wanted_set(view, body_of(wish), name=name, location=location)
        except ArmError as error:
            raise BadWishError(error.message, field=_field(error.target or "")) from error

    def upgrade(self, snapshot: Snapshot, view: ScaleSetView, chosen: Sequence[Machine]) -> Upgrade:
        models = Models(snapshot, view)
        image = image_of(models.latest)
        return Upgrade(
            model=self.model(view),
            reimaged=frozenset(m.name for m in chosen if image_of(models.of(m)) != image),
        )


def body_of(wish: SetWish) -> Json:
    sku: Json = {}
    if wish.capacity is not None:
        sku["capacity"] = wish.capacity
    if wish.size is not None:
        sku["name"] = wish.size
    profile: Json = {}
    if wish.is_spot:
        profile["priority"] = "Spot"
    if wish.is_notified is not None:
        terminate: Json = {"enable": wish.is_notified}
        if wish.is_notified and wish.terminate_notice is not None:
            terminate["notBeforeTimeout"] = show_duration(wish.terminate_notice)
        profile["scheduledEventsProfile"] = {"terminateNotificationProfile": terminate}
    properties: Json = {}
    if profile:
        properties[VM_PROFILE] = profile
    if wish.is_flexible is not None:
        properties["orchestrationMode"] = "Flexible" if wish.is_flexible else "Uniform"
    body: Json = {}
    if sku:
        body["sku"] = sku
    if properties:
        body["properties"] = properties
    return body


def _field(target: str) -> str:
    """The form's word for ARM's."""
    return next((field for word, field in _FIELDS.items() if target.endswith(word)), "")
