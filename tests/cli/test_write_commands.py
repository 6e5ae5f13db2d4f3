"""Commands that change something, against the real control API."""

import json
from pathlib import Path

import pytest

from tests.builders import event_id
from tests.cli.served import Served

TYPES = {
    "freeze": "web",
    "reboot": "web",
    "redeploy": "web",
    "preempt": "cheap",
    "terminate": "api_0",
}
ONE, TWO = event_id(1), event_id(2)


@pytest.mark.parametrize(("type_", "vm"), TYPES.items())
def test_every_type_of_event_can_be_scheduled(served: Served, type_: str, vm: str) -> None:
    served.start(served.steered.switch_on(vm)).result()

    result = served.run("schedule", type_, "--vm", vm)

    assert result.exit_code == 0, result.stderr
    assert f"{type_.capitalize()} Scheduled" in " ".join(result.stdout.split())
    assert f"forewarned approve {ONE[:8]}" in result.stdout


def test_all_that_is_said_of_an_event_reaches_the_server(served: Served) -> None:
    served.start(served.steered.switch_on("web")).result()
    words = "schedule freeze --vm web --notice 1m --short-notice --duration 9s --source user"

    result = served.run(*words.split(), "--description", "a new disk", "--json")

    [event] = json.loads(result.stdout)["events"]
    assert event["not_before"] == "2026-01-05T12:01:00Z"
    assert event["duration"] == "9s"
    assert event["source"] == "User"
    assert event["description"] == "a new disk"


def test_several_vms_get_an_event_in_each_scope_and_all_are_shown(served: Served) -> None:
    served.start(served.steered.switch_on("web", "report")).result()

    result = served.run("schedule", "reboot", "--vm", "web", "--vm", "report")

    assert ONE[:8] in result.stdout
    assert TWO[:8] in result.stdout


def test_where_nobody_reads_the_command_says_so_and_how_to_change_it(served: Served) -> None:
    result = served.run("schedule", "reboot", "--vm", "web")

    assert (
        "No VM reads the document of vm/web, so the work was carried out without notice."
        in result.stdout
    )
    assert "curl -H Metadata:true 'http://127.0.0.1:8169/vm/web/metadata/" in result.stdout


def test_a_host_can_fail_be_foreseen_to_fail_and_be_maintained(served: Served) -> None:
    served.start(served.steered.switch_on("web")).result()

    predicted = served.run("predict", "rack1")
    maintained = served.run("maintain", "--host", "rack1", "--type", "reboot", "--notice", "20m")
    failed = served.run("fail", "rack1")

    assert "in 7d" in predicted.stdout
    assert "Reboot" in maintained.stdout
    assert "in 20m" in maintained.stdout
    assert "Started" in failed.stdout


def test_a_set_can_be_maintained(served: Served) -> None:
    served.start(served.steered.switch_on("db-0")).result()

    result = served.run("maintain", "--scope", "avset/db")

    assert "Freeze Scheduled 2026-01-05 12:15:00 in 15m db-0, db-2" in result.stdout


def test_an_event_is_approved_and_completed_by_the_first_characters_of_its_id(
    served: Served,
) -> None:
    served.schedule("web")

    approved = served.run("approve", "00000001")
    completed = served.run("complete", "0")

    assert "Reboot Started" in approved.stdout
    assert "Reboot Completed" in completed.stdout


def test_approving_what_is_over_says_that_nothing_has_changed(served: Served) -> None:
    event = served.schedule("web")
    served.run("cancel", event)

    result = served.run("approve", event)

    assert result.exit_code == 0
    assert result.stdout.endswith("It was already over: nothing has changed.\n")


def test_canceling_shows_every_event_that_is_called_off(served: Served) -> None:
    served.start(served.steered.switch_on("web", "report")).result()
    served.run("maintain", "--host", "rack1")

    result = served.run("cancel", TWO, "--reason", "not needed")

    assert result.stdout.count("Canceled") == 2


def test_stepping_the_clock_starts_an_event_at_its_not_before_and_no_sooner(
    served: Served,
) -> None:
    served.schedule("web")

    early = served.run("clock", "step", "14m59s")
    on_time = served.run("clock", "step", "1s")

    assert early.stdout.splitlines() == [
        "2026-01-05 12:14:59 UTC, paused",
        "nothing happened on the way",
    ]
    assert on_time.stdout.startswith("2026-01-05 12:15:00 UTC, paused\n")
    assert "Reboot started 00000001 web time: at its NotBefore" in " ".join(on_time.stdout.split())


def test_the_clock_can_be_shown_sped_up_paused_and_resumed(served: Served) -> None:
    bare = served.run("clock")
    shown = served.run("clock", "show")
    faster = served.run("clock", "speed", "60x", "--json")
    paused = served.run("clock", "pause", "--json")
    resumed = served.run("--json", "clock", "resume")
    stepped = served.run("clock", "--json", "step", "--to", "2026-01-06T12:00:00Z")

    assert bare.stdout == shown.stdout == "2026-01-05 12:00:00 UTC, paused\n"
    assert json.loads(faster.stdout)["speed"] == 60
    assert json.loads(paused.stdout)["state"] == "paused"
    assert json.loads(resumed.stdout)["speed"] == 60
    assert json.loads(stepped.stdout)["now"] >= "2026-01-06T12:00:00Z"


def test_a_fleet_file_is_applied_and_what_it_does_not_name_is_pruned(
    served: Served, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('[[vms]]\nname = "web"\naddress = "10.0.0.1"\n[[vms]]\nname = "new"\n')

    applied = served.run("fleet", "apply", str(file))
    pruned = served.run("fleet", "apply", str(file), "--prune", "--json")

    assert "added     1: new" in applied.stdout
    assert "removed   0" in applied.stdout
    assert json.loads(pruned.stdout)["unchanged"] == 2
    assert "report" in json.loads(pruned.stdout)["removed"]


def test_the_one_event_that_is_open_need_not_be_named(served: Served) -> None:
    served.schedule("web")

    result = served.run("approve")

    assert "Reboot Started" in " ".join(result.stdout.split())
