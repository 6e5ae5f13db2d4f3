"""A person's wishes for a scale set mean what the same words of `az` mean."""

from datetime import timedelta

import pytest

from forewarned.control.arm.models.set_changes import ArmWishes, body_of
from forewarned.service.azure.set_changes import BadWishError, SetWish


def test_a_termination_delay_becomes_the_models_terminate_notice() -> None:
    wish = SetWish(capacity=3, is_notified=True, terminate_notice=timedelta(minutes=10))

    wanted = ArmWishes().wanted(None, wish, name="shop", location="local")

    assert wanted.declared.capacity == 3
    assert wanted.declared.model.terminate_notice == timedelta(minutes=10)
    assert body_of(wish)["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] == {
        "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT10M"}
    }


def test_what_is_not_wished_for_is_not_said() -> None:
    assert body_of(SetWish()) == {}


@pytest.mark.parametrize(
    ("name", "wish", "field"),
    [
        ("<script>", SetWish(), "name"),
        ("shop", SetWish(capacity=1001), "capacity"),
        ("shop", SetWish(size="no size"), "size"),
        ("shop", SetWish(is_notified=True, terminate_notice=timedelta(minutes=16)), "delay"),
        ("shop", SetWish(is_notified=True, is_spot=True), "notified"),
    ],
)
def test_a_wish_that_cannot_be_met_names_its_field(name: str, wish: SetWish, field: str) -> None:
    with pytest.raises(BadWishError) as refused:
        ArmWishes().wanted(None, wish, name=name, location="local")

    assert refused.value.field == field
