"""`forewarned host list|drain|status|undrain`."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from forewarned.cli.failures import CommandError
from forewarned.cli.hosts.drains import progress_of, refuse_unless_returned
from forewarned.control.v1.drains.wire import ShownMove
from forewarned.core.model import Resource
from forewarned.service.drains.model import MoveState
from tests.cli.served import Served, serving

ON_RACK1 = ("web", "report")


def nobody(_: Resource) -> str:
    return ""


def a_move(told: dict[str, object]) -> ShownMove:
    nothing: dict[str, object] = {
        "event_id": None,
        "not_before": None,
        "reads": False,
        "actuator": "rack1",
    }
    nothing |= {"target": None, "moved_to": None, "progress": "", "away": None, "tries": 1}
    return msgspec.convert({"vm": "web", "reason": "", **nothing, **told}, ShownMove)


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
    assert "the VM's approval, until" in shown.stdout
    assert asked["host"] == "rack1"
    assert "rack1: Canceled" in ended.stdout


def test_hosts_are_listed_with_their_drains_also_once_they_are_empty(
    served: Served, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "fleet.toml"
    elsewhere.write_text("".join(f'[[vms]]\nname = "{vm}"\nhost = "rack9"\n' for vm in ON_RACK1))

    def rows() -> dict[str, str]:
        lines = served.run("host", "list").stdout.splitlines()
        return dict(" ".join(line.split()).split(" ", 1) for line in lines)

    before = rows()
    served.run("host", "drain", "rack1", "--yes")
    under_way = rows()
    moved = served.run("fleet", "apply", str(elsewhere))
    emptied = rows()
    asked = json.loads(served.run("host", "list", "--json").stdout)
    served.run("host", "undrain", "rack1")

    assert before["Host"] == "VMs Cordoned Drain"
    assert (before["rack1"], before["rack2"]) == ("2 no", "1 no")
    assert under_way["rack1"] == "2 yes Moving, 0 of 2 VMs moved"
    assert moved.exit_code == 0, moved.output
    assert emptied["rack1"].startswith("0 yes Moving, ")
    [rack1] = [host for host in asked if host["name"] == "rack1"]
    assert (rack1["vms"], rack1["drain"]["cordoned"]) == ([], True)
    assert "rack1" not in rows()


def test_vms_that_a_drain_moves_are_moved_back(served: Served) -> None:
    served.run("host", "drain", "rack1", "--yes")
    served.run("clock", "step", "20m")

    returning = served.run("host", "undrain", "rack1", "--return")

    assert "rack1: Returning: ended by " in returning.stdout
    assert "0 of 2 VMs moved back" in returning.stdout


def test_who_waits_for_a_drain_that_does_not_empty_its_host_is_told_so() -> None:
    with serving(actuator_of=nobody) as served:
        stuck = served.run("host", "drain", "rack1", "--yes", "--wait")
        still = served.run("host", "status", "rack1", "--wait", "--json")
        unasked = served.run("host", "status", "rack1")
        served.run("host", "undrain", "rack1")
        ended = served.run("host", "status", "rack1", "--wait")

    assert (stuck.exit_code, still.exit_code, unasked.exit_code, ended.exit_code) == (1, 1, 0, 1)
    assert "rack1: Stuck: can't be moved: " in stuck.stdout
    assert "rack1 is not empty: its drain is Stuck" in stuck.stderr
    assert json.loads(still.stdout)["state"] == "Stuck"
    assert json.loads(still.stderr)["error"]["code"] == "host_not_empty"
    assert "VMs were not moved back: " in ended.stderr


@pytest.mark.parametrize(
    ("state", "moved_to", "is_returned"),
    [
        (MoveState.MOVED, "rack1", True),
        (MoveState.MOVED, None, True),
        (MoveState.MOVED, "rack9", False),
        (MoveState.BLOCKED, None, False),
    ],
)
def test_vms_have_returned_if_they_are_on_the_host_or_gone(
    state: MoveState, moved_to: str | None, *, is_returned: bool
) -> None:
    with nullcontext() if is_returned else pytest.raises(CommandError, match="moved back: web"):
        refuse_unless_returned([a_move({"state": state, "moved_to": moved_to})], "rack1")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"state": MoveState.MOVING, "target": "hv-b"}, "to hv-b"),
        ({"state": MoveState.MOVING, "progress": "62 % is copied"}, "62 % is copied"),
        ({"state": MoveState.MOVING}, ""),
        (
            {"state": MoveState.MOVED, "moved_to": "hv-b", "away": 0.41},
            "on hv-b, interrupted for 0.41 s",
        ),
        (
            {"state": MoveState.WAITING, "reads": True, "reason": "no room"},
            "waits to be moved; no room",
        ),
        (
            {"state": MoveState.WAITING, "target": "hv-b"},
            "waits to be moved to hv-b, without notice: the VM does not read its document",
        ),
    ],
)
def test_a_row_says_how_far_a_vm_is_and_what_it_progress_of(
    told: dict[str, object], words: str
) -> None:
    assert progress_of(a_move(told)) == words


def test_what_is_in_the_way_is_said_before_anything_is_begun() -> None:
    with serving(actuator_of=nobody) as served:
        tried = served.run("host", "drain", "rack1")
        planned = served.run("host", "drain", "rack1", "--dry-run", "--by", "cold-move")

    assert tried.exit_code == 1
    assert "the drain of rack1 was not started: can't be moved: " in tried.stderr
    assert "--yes goes ahead" in tried.stderr
    assert planned.exit_code == 0, planned.output
    assert "rack1: Planned (dry run: nothing is moved): can't be moved: " in planned.stdout
    assert "no actuator carries out its events" in planned.stdout
