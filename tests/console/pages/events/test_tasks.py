"""The page of tasks, and what operators do about them there."""

from collections.abc import AsyncIterator

import pytest

from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor, EventSource, EventType, Resource
from forewarned.core.tasks import Failure
from forewarned.service.events.schedule import EventOrder
from forewarned.service.lifecycle.tasks import Seen, TaskRef
from tests.builders import OPERATOR
from tests.console.console_client import ConsoleClient, console_client, text_of

RACK = Actor(name="rack1")
DOWN = Failure(error="hv-a does not <answer>", unharmed=False, retry=False)


def rack1(_: Resource) -> str:
    return "rack1"


@pytest.fixture
async def console(anyio_backend: object) -> AsyncIterator[ConsoleClient]:
    async with console_client(actuator_of=rack1, mode="service") as seen:
        yield seen


async def stuck(console: ConsoleClient, *names: str) -> str:
    """The event of these VMs, whose tasks are stuck. Its id."""
    order = EventOrder(
        type=EventType.FREEZE,
        source=EventSource.PLATFORM,
        resources=tuple(map(ResourceName, names)),
    )
    [record] = await console.use_cases.scheduler.schedule(order, by=OPERATOR)
    tasks = console.use_cases.tasks
    for claim in await tasks.claim("rack1", holder="hv-a:4711", limit=9):
        ref = TaskRef(claim.task.event_id, claim.task.vm, claim.task.attempt)
        await tasks.fail(ref, DOWN, Seen(), by=RACK)
    return record.event.id


async def test_tasks_are_listed_with_what_became_of_them(console: ConsoleClient) -> None:
    event_id = await stuck(console, "web")

    page = await console.see("/tasks")
    none = await console.see("/tasks?host=elsewhere")
    event = await console.see(f"/events/{event_id}")
    host = await console.see("/hosts/rack1")

    text = text_of(page)
    row = f"web Freeze {event_id[:8]}… Stuck hv-a:4711 rack1 rack1 1 hv-a does not <answer>"
    assert f"{row} Retry Skip" in text
    assert "A task that is Stuck waits for you" in text
    assert 'data-every="2000"' in page
    assert "No tasks match" in text_of(none)
    assert f'href="/tasks?event={event_id}"' in event
    assert 'href="/tasks?host=rack1"' in host


async def test_a_stuck_task_is_retried_then_skipped_and_the_filters_stay(
    console: ConsoleClient,
) -> None:
    event_id = await stuck(console, "web")

    retried = await console.send(f"/tasks/{event_id}/web/retry", host="rack1")
    page = text_of(await console.see("/tasks?host=rack1"))
    again = await console.send(f"/tasks/{event_id}/web/retry", host="rack1")
    skipped = await console.send(f"/tasks/{event_id}/web/skip")
    over = text_of(await console.see(f"/tasks?event={event_id}"))

    assert (retried.status_code, retried.headers["Location"]) == (303, "/tasks?host=rack1")
    assert "Waiting" in page
    assert again.status_code == 400
    assert "is Waiting, so it can't be retried" in text_of(again.text)
    assert skipped.headers["Location"] == "/tasks"
    assert "Skipped" in over
    assert "Retry Skip" not in over


async def test_what_is_no_event_is_a_mistake_of_the_filter(console: ConsoleClient) -> None:
    page = await console.see("/tasks?event=7&state=Stuck", status=400)

    assert 'id="problem-event"' in page
