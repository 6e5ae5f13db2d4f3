"""Approval of events from outside their VMs, one by one and as a list."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import Event, EventStatus
from forewarned.core.rules import Rules
from forewarned.security.identities import Role
from tests.builders import MINUTE, event_id
from tests.control.arm.asking import asking
from tests.control.arm.declared_machines import NOTICED, PLAIN, VMS, WEB
from tests.control.arm.emulator import COMPUTE, Emulator, emulator

UNKNOWN: Final = event_id(0xFFFF)
AVAILABILITY_SET: Final = f"{COMPUTE}/availabilitySets/db"
APPROVED: Final = {"value": "Successfully Approved"}
NOT_FOUND: Final = (404, "NotFound", "Scheduled event not found")


@pytest.fixture(params=["memory", "sqlite"])
async def cloud(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: object
) -> AsyncIterator[Emulator]:
    """Two VMs of their own and an availability set of two, all of whose scopes are active."""
    file = tmp_path / "forewarned.db" if request.param == "sqlite" else None
    async with emulator(file) as running:
        await populate(running)
        yield running


async def populate(cloud: Emulator) -> None:
    await cloud.good("PUT", AVAILABILITY_SET, {"location": "local"})
    reference = {"properties": {"availabilitySet": {"id": AVAILABILITY_SET}}}
    for name in ("db-0", "db-1"):
        await cloud.good("PUT", f"{VMS}/{name}", reference)
    for name in ("web", "report"):
        await cloud.good("PUT", f"{VMS}/{name}", PLAIN)
    for name in ("db-0", "web", "report"):
        await cloud.read(name)


async def restart(cloud: Emulator, name: str) -> Event:
    await cloud.begin("POST", f"{VMS}/{name}/restart")
    return next(event for event in await cloud.read(name) if name in event.resources)


def acknowledging(resource: str, id_: str) -> str:
    return f"{listing(resource)}/{id_}/acknowledge"


def listing(resource: str) -> str:
    return f"{resource}/providers/Microsoft.Maintenance/scheduledevents"


NONE_APPROVED = "None of the scheduled events was approved: see details."


async def details(
    cloud: Emulator, resource: str, *ids: str, message: str = NONE_APPROVED
) -> list[tuple[str, str]]:
    """What came of each approval in a list of which some could not be made."""
    response = await cloud.ask("POST", listing(resource), {"value": ids})
    assert response.status_code == 207, response.text
    error: Any = response.json()["error"]
    assert error["code"] == "MultiStatusResponse"
    assert error["message"] == message
    return [(each["target"], each["code"]) for each in error["details"]]


async def status(cloud: Emulator, event: Event) -> EventStatus:
    record = await cloud.use_cases.engine.ask(lambda snapshot: snapshot.event(event.id))
    assert record is not None
    return record.event.status


# --- one by one ----------------------------------------------------------------------------------


async def test_an_approved_event_starts(cloud: Emulator) -> None:
    event = await restart(cloud, "web")

    assert await cloud.good("POST", acknowledging(WEB, event.id)) == APPROVED

    assert await status(cloud, event) is EventStatus.STARTED


async def test_ids_and_paths_are_taken_in_any_letter_case(cloud: Emulator) -> None:
    event = await restart(cloud, "web")

    path = acknowledging(WEB.replace("/resourceGroups/", "/resourcegroups/"), event.id.lower())
    assert await cloud.good("POST", path.replace("/web/", "/WEB/")) == APPROVED

    assert await status(cloud, event) is EventStatus.STARTED


async def test_approving_again_changes_nothing(cloud: Emulator) -> None:
    """I12, I13."""
    event = await restart(cloud, "web")
    path = acknowledging(WEB, event.id)
    await cloud.good("POST", path)
    before = await cloud.read("web")

    assert await cloud.good("POST", path) == APPROVED
    assert await cloud.read("web") == before

    await cloud.step(10 * MINUTE)
    assert await status(cloud, event) is EventStatus.COMPLETED
    assert await cloud.good("POST", path) == APPROVED


async def test_an_event_of_something_else_is_as_unknown_as_none(cloud: Emulator) -> None:
    """I12: a foreign and a non-existent id get the same answer."""
    foreign = await restart(cloud, "report")
    sibling = await restart(cloud, "db-1")

    for path in (
        acknowledging(WEB, UNKNOWN),
        acknowledging(WEB, "no-guid"),
        acknowledging(WEB, foreign.id),
        acknowledging(f"{VMS}/db-0", sibling.id),
        acknowledging(AVAILABILITY_SET, foreign.id),
    ):
        assert await cloud.refused("POST", path) == NOT_FOUND

    assert await status(cloud, foreign) is EventStatus.SCHEDULED
    assert await status(cloud, sibling) is EventStatus.SCHEDULED


async def test_events_of_a_set_are_approved_for_the_set(cloud: Emulator) -> None:
    event = await restart(cloud, "db-1")

    assert await cloud.good("POST", acknowledging(AVAILABILITY_SET, event.id)) == APPROVED

    assert await status(cloud, event) is EventStatus.STARTED


async def test_events_of_instances_are_approved_for_their_scale_set(cloud: Emulator) -> None:
    scale_set = f"{COMPUTE}/virtualMachineScaleSets/api"
    await cloud.good("PUT", scale_set, {"location": "local", "sku": {"name": "S", "capacity": 2}})
    await cloud.read("api_0")
    await cloud.begin("POST", f"{scale_set}/restart", {"instanceIds": ["1"]})
    [event] = await cloud.read("api_0")

    assert await cloud.good("POST", acknowledging(scale_set, event.id)) == APPROVED

    assert await status(cloud, event) is EventStatus.STARTED


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (f"{VMS}/nobody", (404, "ResourceNotFound")),
        (f"{COMPUTE}/virtualMachineScaleSets/nobody", (404, "ResourceNotFound")),
        (f"{COMPUTE}/availabilitySets/nobody", (404, "ResourceNotFound")),
        (WEB.replace("/rg1/", "/other/"), (404, "ResourceNotFound")),
        (f"{COMPUTE}/disks/web", (400, "InvalidParameter")),
    ],
)
async def test_a_resource_must_be_there(
    cloud: Emulator, resource: str, expected: tuple[int, str]
) -> None:
    event = await restart(cloud, "web")

    assert (await cloud.refused("POST", acknowledging(resource, event.id)))[:2] == expected
    body = {"value": [event.id]}
    assert (await cloud.refused("POST", listing(resource), body))[:2] == expected

    assert await status(cloud, event) is EventStatus.SCHEDULED


# --- lists ---------------------------------------------------------------------------------------


async def test_a_list_of_known_events_is_approved(cloud: Emulator) -> None:
    events = [await restart(cloud, name) for name in ("db-0", "db-1")]

    ids = [event.id for event in events]
    assert await cloud.good("POST", listing(AVAILABILITY_SET), {"value": ids}) == APPROVED

    assert {await status(cloud, event) for event in events} == {EventStatus.STARTED}


async def test_of_a_mixed_list_the_known_ones_are_approved(cloud: Emulator) -> None:
    event = await restart(cloud, "db-0")
    foreign = await restart(cloud, "web")

    results = await details(
        *(cloud, AVAILABILITY_SET, event.id, UNKNOWN, foreign.id, "no-guid"),
        message="Not approved: 3 of 4 scheduled events, see details. The others were approved.",
    )

    assert results == [
        (event.id, "OK"),
        (UNKNOWN, "NotFound"),
        (foreign.id, "NotFound"),
        ("no-guid", "NotFound"),
    ]
    assert await status(cloud, event) is EventStatus.STARTED
    assert await status(cloud, foreign) is EventStatus.SCHEDULED


async def test_a_list_of_which_none_is_found_says_so_of_each(cloud: Emulator) -> None:
    other = EventId(UNKNOWN.replace("F", "E"))

    assert await details(cloud, WEB, UNKNOWN, other) == [(UNKNOWN, "NotFound"), (other, "NotFound")]


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"value": None},
        {"value": "id"},
        {"value": {"id": "id"}},
        {"value": []},
        {"value": [1]},
        {"value": [None]},
        {"value": [UNKNOWN] * 101},
    ],
)
async def test_a_list_that_is_none_is_refused_whole(cloud: Emulator, body: Any) -> None:
    event = await restart(cloud, "web")
    if body and isinstance(body.get("value"), list) and len(body["value"]) == 1:
        body = {"value": [event.id, *body["value"]]}

    refused = await cloud.refused("POST", listing(WEB), body)

    assert refused[:2] == (400, "InvalidRequestContent")
    assert await status(cloud, event) is EventStatus.SCHEDULED


# --- who -----------------------------------------------------------------------------------------


async def test_approving_takes_an_approver(cloud: Emulator) -> None:
    """S12."""
    for path in (acknowledging(WEB, UNKNOWN), listing(WEB)):
        await cloud.ask("POST", path)
        _, _, needs = cloud.door.asked[-1]
        assert needs is Role.APPROVER


async def test_a_vm_approves_for_its_own_scope_alone(cloud: Emulator) -> None:
    """S11."""
    event = await restart(cloud, "web")
    neighbour = await restart(cloud, "db-1")

    cloud.door.vm = ResourceName("db-0")

    assert await cloud.refused("POST", acknowledging(WEB, event.id)) == NOT_FOUND
    assert await status(cloud, event) is EventStatus.SCHEDULED
    assert await cloud.good("POST", acknowledging(f"{VMS}/db-1", neighbour.id)) == APPROVED
    assert await status(cloud, neighbour) is EventStatus.STARTED


async def test_where_each_vm_answers_for_itself_no_other_approves_its_end(
    anyio_backend: object,
) -> None:
    """S11, where the operator chose so."""
    async with emulator(rules=Rules(own_terminate_only=True)) as cloud:
        await populate(cloud)
        await cloud.good("PATCH", f"{VMS}/db-1", NOTICED)
        await cloud.begin("DELETE", f"{VMS}/db-1")
        [event] = await cloud.read("db-0")
        cloud.door.vm = ResourceName("db-0")

        refused = await cloud.refused("POST", acknowledging(AVAILABILITY_SET, event.id))
        results = await details(cloud, AVAILABILITY_SET, event.id)

        assert refused[:2] == (403, "AuthorizationFailed")
        assert results == [(event.id, "AuthorizationFailed")]
        assert await status(cloud, event) is EventStatus.SCHEDULED


async def test_no_approval_without_the_store(anyio_backend: object) -> None:
    """I14."""
    async with asking() as asked:
        await asked.steered.switch_on("web")
        event = await asked.steered.schedule("Reboot", "web")
        path = acknowledging(WEB.replace("/rg1/", "/shop/"), event["event_id"])
        asked.steered.store.is_down = True

        response = await asked.ask("POST", path)

        assert response.status_code == 503
        assert response.headers["Retry-After"] == "1"
        asked.steered.store.is_down = False
        assert await asked.good("POST", path) == APPROVED
