"""What an actuator reports, in the order and as often as a restart makes it report."""

from forewarned.core.ids import EventId, ScopeId
from forewarned.service.records import Stage, StageReport
from tests.builders import MINUTE
from tests.control.control_api import ControlApi, control_api


async def actions(control: ControlApi, event_id: str) -> list[str]:
    rows = (await control.get("/v1/history", event=event_id))["history"]
    return [row["action"] for row in reversed(rows)]


async def test_vms_go_through_an_events_impact_once_however_often_it_is_taken_up(
    anyio_backend: object,
) -> None:
    """I22, I23: after a restart the actuator takes up what has started from its beginning."""
    async with control_api() as control:
        actuation = control.services.use_cases.actuation
        event = await control.schedule("Reboot", "web")
        what = (ScopeId("vm/web"), EventId(event["event_id"]))
        await actuation.report(StageReport(Stage.INTERRUPTED, *what))
        await control.services.use_cases.clock_control.step(MINUTE)
        await actuation.report(StageReport(Stage.RESTORED, *what))

        await actuation.report(
            StageReport(Stage.INTERRUPTED, *what), StageReport(Stage.RESTORED, *what)
        )

        assert await actions(control, event["event_id"]) == ["started", "interrupted", "restored"]
        assert (await control.get("/v1/vms/web"))["state"] == "running"


async def test_a_vm_moves_to_a_host_that_no_other_vm_is_on(anyio_backend: object) -> None:
    """I21: a host that held two update domains of a set could not be worked on."""
    declared = [{"name": "c-0", "host": "spare-01"}, "c-1"]
    async with control_api() as control:
        sets = [{"name": "cache", "vms": declared}]
        await control.put_fleet({"availability_sets": sets})
        event = await control.schedule("Redeploy", "c-1")

        completed = StageReport(Stage.COMPLETED, ScopeId("avset/cache"), EventId(event["event_id"]))
        await control.services.use_cases.actuation.report(completed)

        assert (await control.get("/v1/vms/c-1"))["host"] == "spare-02"


async def test_what_is_simulated_has_tasks_like_anything_that_is_carried_out(
    anyio_backend: object,
) -> None:
    """I22."""
    async with control_api() as control:
        actuation = control.services.use_cases.actuation
        await control.switch_on("web")
        event = await control.schedule("Reboot", "web", notice="0s", short_notice=True)
        what = (ScopeId("vm/web"), EventId(event["event_id"]))

        async def state() -> list[str]:
            found = (await control.get("/v1/tasks", event=event["event_id"]))["tasks"]
            return [task["state"] for task in found]

        waiting = await state()
        claimed = await control.post("/v1/tasks/claim", {"actuator": "simulated", "holder": "me"})
        await actuation.report(StageReport(Stage.INTERRUPTED, *what))
        begun = await state()
        await actuation.report(StageReport(Stage.COMPLETED, *what))

        assert (waiting, begun, await state()) == (["Waiting"], ["Begun"], ["Done"])
        assert claimed == {"tasks": []}
        assert (await control.get("/v1/tasks"))["tasks"] == []
