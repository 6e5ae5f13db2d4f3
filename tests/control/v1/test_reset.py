"""`POST /v1/reset`: an emulator as it was when it started."""

from dataclasses import replace
from typing import Any

from forewarned.clock import VirtualClock
from forewarned.service.records import Declaration
from tests.builders import NOON
from tests.control.control_api import ControlApi, control_api, later


async def fleet_of(control: ControlApi) -> Any:  # JSON
    return (await control.get("/v1/fleet"))["scopes"]


async def test_every_event_is_over_and_history_says_why(control: ControlApi) -> None:
    """I19."""
    await control.switch_on("web", "db-0")
    scheduled = await control.schedule("Reboot", "web")
    await control.post("/v1/scopes/avset/db/maintain", {"type": "Freeze"})
    started = await control.schedule("Freeze", "cheap")

    done = await control.post("/v1/reset", **{"Forewarned-Actor": "ada"})

    assert done["events"] == 3
    assert (await control.get("/v1/events"))["events"] == []
    over = await control.get(f"/v1/events/{scheduled['event_id']}")
    assert (over["status"], over["end_reason"]) == ("Canceled", "the emulator was reset")
    assert (await control.get(f"/v1/events/{started['event_id']}"))["status"] == "Completed"
    rows = (await control.get("/v1/history", event=scheduled["event_id"]))["history"]
    assert (rows[0]["action"], rows[0]["actor"]) == ("canceled", "ada")


async def test_nothing_of_an_earlier_test_starts_later(control: ControlApi) -> None:
    await control.switch_on("web", "db-0", "db-1")
    await control.schedule("Reboot", "web")
    await control.post("/v1/scopes/avset/db/maintain", {"type": "Freeze"})
    await control.post("/v1/reset")
    before = await fleet_of(control)

    await control.post("/v1/clock/step", {"by": "12h"})

    events = (await control.get("/v1/events", status="all"))["events"]
    assert {event["status"] for event in events} == {"Canceled"}
    assert await fleet_of(control) == before


async def test_the_fleet_is_as_it_was_declared(control: ControlApi) -> None:
    declared = await fleet_of(control)
    vms = [{"name": "web", "address": "10.0.0.77", "host": "rack9"}, {"name": "new"}]
    await control.put_fleet({"vms": vms}, prune="true")

    done = await control.post("/v1/reset")

    assert (done["removed"], len(done["added"])) == (["new"], 7)
    assert [scope for scope in await fleet_of(control) if scope["vms"]] == declared


async def test_a_vm_that_was_moved_is_where_it_was_declared(control: ControlApi) -> None:
    declared = await fleet_of(control)
    moved = await control.schedule("Redeploy", "web")
    await control.post(f"/v1/events/{moved['event_id']}/complete")
    assert await fleet_of(control) != declared

    done = await control.post("/v1/reset")

    assert (done["added"], done["removed"]) == ([], [])
    assert await fleet_of(control) == declared


async def test_a_vm_that_was_moved_keeps_its_place_among_its_neighbours(
    control: ControlApi,
) -> None:
    """The fleet's first VM is the default VM, and must be the same one after a reset."""
    declared = await fleet_of(control)
    moved = await control.schedule("Redeploy", "db-0")
    await control.post(f"/v1/events/{moved['event_id']}/complete")

    await control.post("/v1/reset")

    assert await fleet_of(control) == declared


async def test_what_was_declared_by_arm_is_gone(control: ControlApi) -> None:
    path = "/subscriptions/s/resourceGroups/mine"
    declaration = Declaration(path=path, document="{}", created_at=NOON)
    await control.services.engine.decide(lambda tx: tx.declare(declaration))

    await control.post("/v1/reset")

    left = await control.services.engine.ask(lambda s: list(s.declarations("")))
    assert left == []


async def test_incarnations_never_fall(control: ControlApi) -> None:
    """I7: a VM may have read the document, and goes on reading it."""
    await control.switch_on("web")
    for _ in range(3):
        event = await control.schedule("Reboot", "web")
        await control.post(f"/v1/events/{event['event_id']}/cancel")
    await control.schedule("Reboot", "web")
    before = (await control.get("/v1/scopes/vm/web"))["incarnation"]

    await control.post("/v1/reset")

    assert (await control.get("/v1/scopes/vm/web"))["incarnation"] == before + 1


async def test_no_vm_counts_as_having_read(control: ControlApi) -> None:
    await control.switch_on("web")

    await control.post("/v1/reset")

    scope = await control.get("/v1/scopes/vm/web")
    assert (scope["active"], scope["last_read_at"], scope["last_read_by"]) == (False, None, None)
    assert not (await control.schedule("Reboot", "web"))["announced"]


async def test_faults_are_removed(control: ControlApi) -> None:
    await control.post("/v1/faults", {"status": 500})

    done = await control.post("/v1/reset")

    assert done["faults"] == 1
    assert (await control.get("/v1/faults"))["faults"] == []


async def test_the_clock_stands_where_it_stood_and_runs_as_it_did_at_the_start(
    anyio_backend: object,
) -> None:
    """Time never goes back: I1 rests on it."""
    async with control_api(clock=VirtualClock(NOON, speed=0)) as control:
        await control.post("/v1/clock/step", {"by": "1h"})
        await control.post("/v1/clock/speed", {"speed": 0.001})

        done = await control.post("/v1/reset")

        assert done["clock"]["state"] == "paused"
        assert done["clock"]["now"] >= later(hours=1)


async def test_a_reset_of_what_nothing_happened_to_changes_nothing(control: ControlApi) -> None:
    rows = (await control.get("/v1/history"))["history"]

    done = await control.post("/v1/reset")

    assert (done["events"], done["added"], done["removed"], done["faults"]) == (0, [], [], 0)
    assert (await control.get("/v1/history"))["history"] == rows


async def test_a_server_of_real_events_refuses(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    reset = replace(control.services.reset, plan=None)
    real = ControlApi(control.store, replace(control.services, reset=reset))

    status, error = await real.refused("POST", "/v1/reset")

    assert (status, error["code"]) == (409, "reset_forbidden")
    assert (await control.get(f"/v1/events/{event['event_id']}"))["status"] == "Scheduled"
