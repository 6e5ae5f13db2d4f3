"""Instances that are protected: what leaves them alone, and what does not."""

from typing import Any, Final

import pytest

from tests.builders import MINUTE
from tests.control.arm.emulator import Emulator
from tests.control.arm.sets import SETS, WEB, a_set, everything, ids, instances, profile

NEWEST: Final = f"{WEB}/virtualMachines/3"


@pytest.fixture
async def four(arm: Emulator) -> Emulator:
    """With a Uniform set of four, which is brought to its model by itself."""
    await arm.good("PUT", WEB, a_set(4, upgradePolicy={"mode": "Automatic"}))
    return arm


async def protect(arm: Emulator, path: str = NEWEST, **policy: object) -> Any:
    """As `az vmss update --instance-id` does: what there is, with that one thing changed."""
    body = await arm.good("GET", path)
    body["properties"]["protectionPolicy"] = policy
    return await arm.good("PUT", path, body)


async def scale(arm: Emulator, capacity: int) -> Any:
    return await arm.good("PUT", WEB, {"sku": {"capacity": capacity}})


async def test_an_instance_shows_the_protection_it_was_given(four: Emulator) -> None:
    put = await protect(four, protectFromScaleIn=True)
    listed = [each["properties"].get("protectionPolicy") for each in await instances(four)]
    await protect(four, protectFromScaleSetActions="true")
    both = (await four.good("GET", NEWEST))["properties"]["protectionPolicy"]
    await protect(four, protectFromScaleIn=False, protectFromScaleSetActions=False)

    only = {"protectFromScaleIn": True, "protectFromScaleSetActions": False}
    assert put["properties"]["protectionPolicy"] == only
    assert listed == [None, None, None, only]
    assert both == {"protectFromScaleIn": True, "protectFromScaleSetActions": True}
    assert "protectionPolicy" not in (await four.good("GET", NEWEST))["properties"]


@pytest.mark.parametrize("policy", ["protectFromScaleIn", "protectFromScaleSetActions"])
async def test_a_protected_instance_stays_when_its_set_is_scaled_in(
    four: Emulator, policy: str
) -> None:
    await protect(four, NEWEST, **{policy: True})

    await scale(four, 2)
    await four.step(30 * MINUTE)

    assert await ids(four) == ["0", "3"]


async def test_no_set_gets_smaller_than_what_is_protected(four: Emulator) -> None:
    await protect(four, protectFromScaleIn=True)
    before = await everything(four)

    status, code, message = await four.refused("PUT", WEB, {"sku": {"capacity": 0}})

    assert (status, code) == (409, "OperationNotAllowed")
    assert "1 instance is protected from scale-in" in message
    assert await everything(four) == before


async def test_an_instance_is_spared_by_what_is_asked_of_its_set_and_not_of_itself(
    four: Emulator,
) -> None:
    await protect(four, protectFromScaleSetActions=True)
    await protect(four, f"{WEB}/virtualMachines/2", protectFromScaleIn=True)

    await four.good("PATCH", WEB, profile(osProfile={"adminUsername": "bob"}))
    await four.good("POST", f"{WEB}/manualupgrade", {"instanceIds": ["*"]})
    brought = [each["properties"]["latestModelApplied"] for each in await instances(four)]
    await four.good("POST", f"{WEB}/deallocate", {"instanceIds": ["*"]})
    await four.good("POST", f"{WEB}/powerOff")
    path = f"{NEWEST}/instanceView"
    power = (await four.good("GET", path))["statuses"][1]["code"]
    await four.good("POST", f"{WEB}/manualupgrade", {"instanceIds": ["3"]})
    await four.good("POST", f"{NEWEST}/deallocate")

    assert brought == [True, True, True, False]
    assert power == "PowerState/running"
    assert (await four.good("GET", NEWEST))["properties"]["latestModelApplied"]
    assert (await four.good("GET", path))["statuses"][1]["code"] == "PowerState/deallocated"


async def test_nothing_protects_from_being_deleted_by_id_or_with_the_set(four: Emulator) -> None:
    for instance in ("2", "3"):
        await protect(four, f"{WEB}/virtualMachines/{instance}", protectFromScaleSetActions=True)

    await four.good("POST", f"{WEB}/delete", {"instanceIds": ["3"]})
    await four.step(30 * MINUTE)
    left = await ids(four)
    await four.good("DELETE", WEB)
    await four.step(30 * MINUTE)

    assert left == ["0", "1", "2"]
    assert (await four.ask("GET", WEB)).status_code == 404


async def test_a_set_that_is_made_again_protects_nothing(four: Emulator) -> None:
    """F18: a new VM is a new VM."""
    await protect(four, protectFromScaleIn=True)
    await four.good("DELETE", WEB)
    await four.step(30 * MINUTE)

    await four.good("PUT", WEB, a_set(4))

    assert "protectionPolicy" not in (await four.good("GET", NEWEST))["properties"]


async def test_what_can_not_be_protected_is_refused(four: Emulator) -> None:
    flexible = f"{SETS}/flex"
    await four.good("PUT", flexible, a_set(1, orchestrationMode="Flexible"))
    [name] = await ids(four, flexible)
    body = {"properties": {"protectionPolicy": {"protectFromScaleIn": True}}}
    wrong = {"properties": {"protectionPolicy": {"protectFromScaleIn": "maybe"}}}

    ghost = await four.refused("PUT", f"{WEB}/virtualMachines/9", body)
    own = await four.refused("PUT", f"{flexible}/virtualMachines/{name}", body)
    unclear = await four.refused("PUT", NEWEST, wrong)

    assert (ghost[0], ghost[1]) == (404, "ResourceNotFound")
    assert (own[0], own[1]) == (409, "OperationNotAllowed")
    assert "Flexible" in own[2]
    assert (unclear[0], unclear[1]) == (400, "InvalidParameter")
