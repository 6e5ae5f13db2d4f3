"""`forewarned wait`."""

import asyncio
import json

import pytest

from tests.cli.served import Served


def approve(served: Served, event_id: str) -> None:
    path = f"/v1/events/{event_id}/approve"
    served.start(served.steered.post(path)).result()


def test_an_approval_ends_the_wait_for_it(served: Served) -> None:
    event_id = served.schedule("web")

    async def approve_once_it_waits() -> None:
        while not served.steered.services.waits.waiting:  # noqa: ASYNC110  # turns of the loop
            await asyncio.sleep(0)
        await served.steered.post(f"/v1/events/{event_id}/approve")

    handler = served.start(approve_once_it_waits())
    result = served.run("wait", "--json")
    handler.result()

    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert (shown["event_id"], shown["approval"]["by"]) == (event_id, "control")


def test_people_are_shown_the_event(served: Served) -> None:
    event_id = served.schedule("web")
    approve(served, event_id)

    result = served.run("wait", "--for", "started")

    assert result.exit_code == 0, result.output
    assert event_id[:8] in result.stdout
    assert "Started" in result.stdout


@pytest.mark.parametrize("milestone", ["approved", "started", "completed"])
def test_time_that_is_up_is_exit_code_1(served: Served, milestone: str) -> None:
    event_id = served.schedule("web")

    result = served.run("wait", event_id, "--for", milestone, "--timeout", "10ms")

    assert result.exit_code == 1
    assert f"{event_id} is Scheduled and was not {milestone} within 10ms" in result.stderr


@pytest.mark.parametrize("milestone", ["approved", "started", "completed"])
def test_what_can_not_happen_any_more_fails_at_once(served: Served, milestone: str) -> None:
    event_id = served.schedule("web")
    served.start(served.steered.post(f"/v1/events/{event_id}/cancel")).result()

    result = served.run("--json", "wait", event_id, "--for", milestone, "--timeout", "1h")

    assert result.exit_code == 1
    assert json.loads(result.stderr)["error"]["code"] == f"never_{milestone}"
