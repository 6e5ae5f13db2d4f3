"""What is got can be put again, by whatever client, and nothing has changed by it."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from forewarned.control.fleet import wire
from forewarned.control.fleet.file import demo_fleet, load_fleet
from forewarned.core.model import Actor
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.ports import Snapshot
from tests.control.arm.asking import SUBSCRIPTION, VERSION
from tests.control.arm.declared_machines import FULL, NOTICED, PLAIN, SPOT, VMS
from tests.control.arm.emulator import COMPUTE, Emulator, emulator
from tests.control.arm.readers import AZ, Kind, Reader, azure_sdk, plain, real_az
from tests.control.arm.sets import SETS, a_set
from tests.effort import few

COLLECTIONS: Final = {
    Kind.AVAILABILITY_SET: "availabilitySets",
    Kind.SCALE_SET: "virtualMachineScaleSets",
    Kind.MACHINE: "virtualMachines",
}
EXAMPLES: Final = AZ.parents[2] / "examples"


@pytest.fixture(scope="session")
def az() -> Iterator[Reader]:
    with real_az() as read:
        yield read


# --- every fleet ---------------------------------------------------------------------------------

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}[A-Za-z0-9_]", fullmatch=True)
tags = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3)
regular = st.fixed_dictionaries(
    {},
    optional={
        # Of a private cloud: its own words for what Azure has others for.
        "size": st.one_of(st.sampled_from(["m1.large", "4 cores", ""]), st.text(max_size=4)),
        "os_type": st.sampled_from(["Linux", "Windows", "FreeBSD"]),
        "terminate_notification": st.sampled_from(["5m", "7m30s", "14m59s500ms", "PT15M"]),
        "tags": tags,
    },
)
spot = st.fixed_dictionaries(
    {"priority": st.just("Spot")},
    optional={"eviction_policy": st.sampled_from(["Deallocate", "Delete"]), "tags": tags},
)
models = st.one_of(regular, spot)
policies = st.fixed_dictionaries(
    {},
    optional={
        "approve_user_reboot": st.booleans(),
        "approve_user_redeploy": st.booleans(),
        "approve_when_all_down": st.booleans(),
        "event_grid_version": st.sampled_from(["2017-03-01", "2020-07-01"]),
    },
)
zones = st.sampled_from(["", "1", "2", "west-a"])


def declared(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A table of a fleet file, with a model and a policy."""
    return st.builds(
        lambda table, model, policy: table | model | {"policy": policy},
        st.fixed_dictionaries(fields),
        models,
        policies,
    )


@st.composite
def fleets(draw: st.DrawFn) -> FleetPlan:
    """As fleet files have them. No two things of a fleet have the same name."""
    fresh = iter(
        draw(st.lists(names, min_size=10, max_size=10, unique_by=lambda name: name.lower()[:6]))
    )
    vms = draw(st.lists(declared(zone=zones), max_size=2))
    sets = draw(st.lists(declared(count=st.integers(1, 3)), max_size=1))
    scale_sets = draw(
        st.lists(
            declared(
                capacity=st.integers(1, 4),
                orchestration=st.sampled_from(["Uniform", "Flexible"]),
                zones=st.lists(zones.filter(bool), max_size=3, unique=True),
                fault_domains=st.integers(1, 5),
                computer_name_prefix=st.sampled_from(["", "p", "Ü x", "long" * 16]),
            ),
            max_size=2,
        )
    )
    roles = draw(st.lists(st.fixed_dictionaries({"instances": st.integers(1, 2)}), max_size=1))
    return wire.parse(
        {
            "location": draw(st.sampled_from(["local", "West Europe", "Rack 3", "Übersee"])),
            "resource_group": draw(st.sampled_from(["demo", "My-Group_1"])),
            "vms": [{"name": next(fresh), **each} for each in vms],
            "availability_sets": [{"name": next(fresh), **each} for each in sets],
            "scale_sets": [{"name": next(fresh), **each} for each in scale_sets],
            "cloud_services": [
                {"name": next(fresh), "roles": [{"name": next(fresh), **each} for each in roles]}
            ],
        }
    )


# To find the smallest fleet that does not go round takes minutes, and says little more.
@settings(few(3), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(plan=fleets())
def test_whatever_a_fleet_declares_can_be_got_and_put_again(plan: FleetPlan, az: Reader) -> None:
    asyncio.run(_goes_round(plan, az))


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(demo_fleet(), id="demo"),
        pytest.param(load_fleet(EXAMPLES / "fleet.toml"), id="example", marks=pytest.mark.thorough),
    ],
)
async def test_so_can_the_fleets_that_come_with_the_product(plan: FleetPlan, az: Reader) -> None:
    await _goes_round(plan, az)


async def _goes_round(plan: FleetPlan, az: Reader) -> None:
    async with emulator() as arm:
        await arm.use_cases.fleet.apply(plan, by=Actor(name="file"))

        for reader in (az, azure_sdk, plain):
            before = await _state(arm)
            for kind, path, body in await _all(arm):
                await arm.good("PUT", path, reader(kind, body))

                assert await arm.good("GET", path) == body

            assert await _state(arm) == before


async def test_so_can_the_instances_of_its_uniform_sets() -> None:
    """As `az vmss update --instance-id` does. VMs of Flexible sets are among all VMs above."""
    async with emulator() as arm:
        await arm.use_cases.fleet.apply(demo_fleet(), by=Actor(name="file"))
        before = await _state(arm)
        sets = [path for kind, path, _ in await _all(arm) if kind is Kind.SCALE_SET]
        uniform = [
            each
            for path in sets
            if (await arm.good("GET", path))["properties"]["orchestrationMode"] == "Uniform"
            for each in (await arm.good("GET", f"{path}/virtualMachines"))["value"]
        ]

        for reader in (azure_sdk, plain):
            for body in uniform:
                await arm.good("PUT", body["id"], reader(Kind.INSTANCE, body))

                assert await arm.good("GET", body["id"]) == body

        assert len(uniform) == 5
        assert await _state(arm) == before


# --- and what clients declare --------------------------------------------------------------------


async def test_what_a_client_declares_in_few_words_is_a_whole_model(
    arm: Emulator, az: Reader
) -> None:
    for number, body in enumerate((PLAIN, NOTICED, SPOT, FULL)):
        await arm.good("PUT", f"{VMS}/vm-{number}", body)
    await arm.good("PUT", f"{SETS}/uniform", a_set())
    await arm.good("PUT", f"{SETS}/few-words", {"sku": {"capacity": 1}})
    flexible = {"orchestrationMode": "Flexible"}
    await arm.good("PUT", f"{SETS}/flexible", {"properties": flexible})
    many = a_set(2, orchestrationMode="Flexible")
    await arm.good("PUT", f"{SETS}/with-vms", many)
    await arm.good("PUT", f"{COMPUTE}/availabilitySets/set", {})

    for reader in (az, azure_sdk, plain):
        before = await _state(arm)
        for kind, path, body in await _all(arm):
            await arm.good("PUT", path, reader(kind, body))

            assert await arm.good("GET", path) == body
        assert await _state(arm) == before


async def _all(arm: Emulator) -> list[tuple[Kind, str, Any]]:
    """Every resource as it is listed, which is as it is shown."""
    everywhere = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute"
    found = [
        (kind, each["id"], each)
        for kind, collection in COLLECTIONS.items()
        for each in (await arm.good("GET", f"{everywhere}/{collection}"))["value"]
    ]
    for _, path, body in found:
        assert await arm.good("GET", f"{path}?api-version={VERSION}") == body
    return found


async def _state(arm: Emulator) -> object:
    """All that VMs are, the rules they are under, and whether they are on their set's model."""

    def question(snapshot: Snapshot) -> object:
        scopes = {each.scope.id: each.scope for each in snapshot.scopes()}
        return scopes, {each.name: each for each in snapshot.bindings()}

    instances = [
        (await arm.good("GET", f"{path}/virtualMachines"))["value"]
        for kind, path, _ in await _all(arm)
        if kind is Kind.SCALE_SET
    ]
    return await arm.use_cases.engine.ask(question), instances
