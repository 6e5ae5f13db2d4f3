"""`forewarned host drain|status|undrain`."""

import json
from collections.abc import Iterator

import pytest

from forewarned.core.model import Resource
from tests.cli.served import Served, serving


def nobody(_: Resource) -> str:
    return ""


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        found.start(found.steered.switch_on("web")).result()
        yield found


def test_a_drain_is_begun_shown_and_ended(served: Served) -> None:
    begun = served.run("host", "drain", "rack1", "--yes", "--deadline", "6h")
    shown = served.run("host", "status", "rack1")
    asked = json.loads(served.run("host", "status", "rack1", "--json").stdout)
    ended = served.run("host", "undrain", "rack1")

    assert begun.exit_code == 0, begun.output
    assert "web" in begun.stdout
    assert "its approval, or" in shown.stdout
    assert asked["host"] == "rack1"
    assert "rack1: Canceled" in ended.stdout


def test_what_is_in_the_way_is_said_before_anything_is_begun() -> None:
    with serving(actuator_of=nobody) as served:
        tried = served.run("host", "drain", "rack1")
        planned = served.run("host", "drain", "rack1", "--dry-run", "--by", "cold-move")

    assert tried.exit_code == 1
    assert "nothing was begun on rack1: can't be moved: " in tried.stderr
    assert "--yes goes ahead" in tried.stderr
    assert planned.exit_code == 0, planned.output
    assert "rack1: Planned (dry run: nothing is begun): can't be moved: " in planned.stdout
    assert "no actuator carries out its events" in planned.stdout
