"""`forewarned tasks`."""

import json
from collections.abc import Iterator

import pytest

from forewarned.core.model import Resource
from tests.cli.served import Served, serving

CLAIM = {"actuator": "rack1", "holder": "hv-a:1", "limit": 9}
DOWN = {"attempt": 1, "error": "no answer", "unharmed": False}


def rack1(_: Resource) -> str:
    return "rack1"


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(actuator_of=rack1) as found:
        yield found


def stuck(served: Served) -> str:
    event = served.schedule("web", type="Freeze")
    served.start(served.steered.post(f"/v1/events/{event}/approve")).result()
    served.start(served.steered.post("/v1/tasks/claim", CLAIM)).result()
    served.start(served.steered.post(f"/v1/tasks/{event}/web/fail", DOWN)).result()
    return event


def test_tasks_are_listed_with_what_to_do_about_those_that_are_stuck(served: Served) -> None:
    event = stuck(served)

    shown = served.run("tasks", "list")
    other = served.run("tasks", "list", "--host", "rack9", "--state", "stuck")
    asked = json.loads(served.run("tasks", "list", "--event", event[:8], "--json").stdout)

    assert shown.exit_code == 0, shown.output
    rows = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert rows[0] == "Event Type VM Host State Actuator and error"
    assert rows[1] == f"{event[:8]} Freeze web rack1 Stuck rack1: no answer"
    assert f"forewarned tasks retry {event[:8]} web" in shown.stdout
    assert other.stdout == "no tasks\n"
    assert [task["state"] for task in asked["tasks"]] == ["Stuck"]


def test_a_stuck_task_is_retried_and_skipped(served: Served) -> None:
    event = stuck(served)

    retried = served.run("tasks", "retry", event[:8], "web")
    again = served.run("tasks", "retry", event[:8], "web")
    skipped = served.run("tasks", "skip", event[:8], "web")

    assert "Waiting" in retried.stdout
    assert again.exit_code == 1
    assert "is Waiting, so it can't be retried" in again.stderr
    assert "Skipped" in skipped.stdout
    assert "no open events" in served.run("events").stdout
