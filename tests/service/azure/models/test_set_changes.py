"""What a person asks of a scale set means what the same words of `az` mean."""

from datetime import timedelta

import pytest

from forewarned.service.azure.models.documents import InvalidPropertyError
from forewarned.service.azure.models.scale_set import DeclaredScaleSet
from forewarned.service.azure.models.set_changes import ScaleSetChange, refuse_name, revised_set
from forewarned.service.fleet.declaration import Orchestration


def created(change: ScaleSetChange) -> DeclaredScaleSet:
    return revised_set(None, change.document(), name="shop", location="local")


def test_a_termination_delay_becomes_the_models_terminate_notice() -> None:
    change = ScaleSetChange(capacity=3, is_notified=True, terminate_notice=timedelta(minutes=10))

    declared = created(change)

    assert declared.capacity == 3
    assert declared.model.terminate_notice == timedelta(minutes=10)
    properties = change.document()["properties"]
    assert properties["virtualMachineProfile"]["scheduledEventsProfile"] == {
        "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT10M"}
    }


def test_a_change_that_asks_for_nothing_says_nothing() -> None:
    assert ScaleSetChange().document() == {}


def test_what_is_changed_differs_and_all_else_stays() -> None:
    before = created(ScaleSetChange(capacity=2, orchestration=Orchestration.FLEXIBLE))

    change = ScaleSetChange(size="Standard_D4s_v5").document()
    after = revised_set(before, change, name="shop", location="elsewhere")

    assert after.model.size == "Standard_D4s_v5"
    assert (after.capacity, after.orchestration, after.location) == (
        2,
        Orchestration.FLEXIBLE,
        "local",
    )
    assert after.model_document != before.model_document


def test_a_name_must_be_one_that_azure_takes() -> None:
    with pytest.raises(InvalidPropertyError, match="script"):
        refuse_name("<script>")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (ScaleSetChange(capacity=1001), "sku.capacity"),
        (ScaleSetChange(size="no size"), "sku.name"),
        (
            ScaleSetChange(is_notified=True, terminate_notice=timedelta(minutes=16)),
            "terminateNotificationProfile.notBeforeTimeout",
        ),
        (
            ScaleSetChange(is_notified=True, is_spot=True),
            "terminateNotificationProfile.enable",
        ),
    ],
)
def test_a_change_that_no_set_can_have_names_the_property(
    change: ScaleSetChange, path: str
) -> None:
    with pytest.raises(InvalidPropertyError) as refused:
        created(change)

    assert refused.value.path.endswith(path)
