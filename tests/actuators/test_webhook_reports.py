"""A service that accepts a task and reports to the server itself: later, twice, or wrongly."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from forewarned.actuators.actuator import Actuator
from forewarned.actuators.http_desk import HttpDesk, Server
from forewarned.actuators.webhook import WebhookTable
from tests.actuators.served import rack1, served
from tests.agent.hooks.http_service import Asked, Reply, answering
from tests.control.control_api import ControlApi, control_api


@dataclass
class Receiver:
    """Answers 202 to all it is asked."""

    control: ControlApi
    asked: list[Any] = field(default_factory=list)
    """The data of the requests."""

    def answer(self, request: Asked) -> Reply:
        self.asked.append(request.json["data"])
        return Reply(status=202)

    async def report(self, what: str, **told: object) -> tuple[int, Any]:
        """The status, and what the server says."""
        data = self.asked[-1]
        response = await self.control.http.post(
            f"/v1/tasks/{data['event_id']}/{data['vm']}/{what}",
            json={"attempt": data["attempt"], **told},
        )
        return response.status_code, response.json()


async def until_asked(receiver: Receiver, times: int = 1) -> None:
    async with asyncio.timeout(30):
        while len(receiver.asked) < times:  # noqa: ASYNC110  # the service is in another thread
            await asyncio.sleep(0.01)


@pytest.fixture
async def receiver(tmp_path: Path) -> AsyncIterator[Receiver]:
    """With an actuator that asks it."""
    (tmp_path / "hook.key").write_text("secret")
    stop = asyncio.Event()
    async with control_api(actuator_of=rack1) as control, served(control) as url:
        receiver = Receiver(control)
        with answering(receiver.answer) as service:
            table = WebhookTable(url=service.url, secret_file=tmp_path / "hook.key")
            async with (
                HttpDesk(Server(url=url), actuator="rack1", holder="test") as desk,
                table.equipped(tmp_path / "state") as equipped,
            ):
                running = asyncio.create_task(Actuator("rack1", equipped, desk).run(stop))
                yield receiver
                stop.set()
                await running


async def test_a_report_ends_the_event_and_a_second_one_changes_nothing(
    receiver: Receiver,
) -> None:
    event = await receiver.control.schedule("Redeploy", "web")
    await until_asked(receiver)

    first, _ = await receiver.report("finish", after={"host": "rack9"})
    again, refusal = await receiver.report("finish", after={"host": "rack7"})

    assert (first, again) == (200, 409)
    assert "is no longer the current attempt" in refusal["error"]["message"]
    shown = await receiver.control.get(f"/v1/events/{event['event_id']}")
    assert shown["status"] == "Completed"
    assert (await receiver.control.get("/v1/vms/web"))["host"] == "rack9"


async def test_a_report_that_can_not_be_read_changes_nothing(receiver: Receiver) -> None:
    event = await receiver.control.schedule("Redeploy", "web")
    await until_asked(receiver)

    wrong, _ = await receiver.report("finish", after="rack9")
    late, _ = await receiver.report("finish", attempt=7, after={"host": "rack9"})

    assert (wrong, late) == (400, 409)
    shown = await receiver.control.get(f"/v1/events/{event['event_id']}")
    assert shown["status"] == "Started"


async def test_a_service_that_could_not_do_it_says_whether_the_vm_is_unharmed(
    receiver: Receiver,
) -> None:
    event = await receiver.control.schedule("Redeploy", "web")
    await until_asked(receiver)

    status, _ = await receiver.report("fail", error="no host has room", unharmed=True)

    assert status == 200
    shown = await receiver.control.get(f"/v1/events/{event['event_id']}")
    assert shown["status"] == "Completed"
    history = await receiver.control.get("/v1/history")
    assert any("not carried out: no host has room" in str(row) for row in history["history"])
