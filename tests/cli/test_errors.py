"""What commands say, and how they exit, when things go wrong."""

import json
import shlex
from pathlib import Path

import click
import httpx2
import pytest

from forewarned.cli import cli
from forewarned.clock import SystemClock
from tests.builders import event_id
from tests.cli.served import Served, invoke, serving

NOWHERE = "127.0.0.1:1"


def test_a_refusal_exits_with_1_and_says_what_to_do(served: Served) -> None:
    result = served.run("schedule", "reboot", "--vm", "wep", "--vm", "reports")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: no VM is named 'wep'",
        "Instead of wep, did you mean web?",
        "Instead of reports, did you mean report?",
        "'forewarned fleet show' lists the VMs.",
    ]


def test_hosts_and_scopes_with_a_slip_are_suggested_as_well(served: Served) -> None:
    host = served.run("fail", "rack9")
    scope = served.run("maintain", "--scope", "avset/bd")

    assert (host.exit_code, scope.exit_code) == (1, 1)
    assert "did you mean rack2, rack1?" in host.stderr
    assert "did you mean avset/db?" in scope.stderr


def test_with_json_an_error_is_the_apis_own(served: Served) -> None:
    result = served.run("schedule", "reboot", "--vm", "nope", "--json")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert json.loads(result.stderr)["error"]["code"] == "unknown_resource"


def test_with_json_errors_of_the_cli_have_the_same_shape(served: Served) -> None:
    refused = served.run("approve", "ABC", "--json")
    unreachable = invoke("events", "--json", "--control", NOWHERE)

    assert json.loads(refused.stderr)["error"]["code"] == "unknown_event"
    assert json.loads(unreachable.stderr)["error"]["code"] == "unreachable"


def test_an_ambiguous_event_lists_the_candidates(served: Served) -> None:
    one, two = served.schedule("web"), served.schedule("report")

    result = served.run("approve", "0000")

    assert result.exit_code == 1
    assert "the ids of 2 events begin with '0000'" in result.stderr
    assert f"  {one}  Reboot Scheduled of web" in result.stderr
    assert f"  {two}  Reboot Scheduled of report" in result.stderr


@pytest.mark.parametrize(
    ("command", "none", "several"),
    [
        ("approve", "no event can be approved", "2 events can be approved"),
        ("cancel", "no event can be canceled", "2 events can be canceled"),
        ("explain", "no event is open", "2 events are open"),
    ],
)
def test_an_event_must_be_named_unless_there_is_just_one_the_command_is_for(
    served: Served, command: str, none: str, several: str
) -> None:
    without = served.run(command)
    one, two = served.schedule("web"), served.schedule("report")
    with_two = served.run(command)

    assert (without.exit_code, with_two.exit_code) == (1, 1)
    assert without.stderr.startswith(f"error: {none}\n'forewarned events'")
    assert with_two.stderr.startswith(f"error: {several}\nSay which:\n")
    assert f"  {one}  Reboot Scheduled of web" in with_two.stderr
    assert f"  {two}  Reboot Scheduled of report" in with_two.stderr


def test_the_only_event_that_can_be_approved_needs_no_id_whatever_else_is_open(
    served: Served,
) -> None:
    started, earlier = served.schedule("web"), served.schedule("api_0", type="Terminate")
    held = served.schedule("api_1", type="Terminate")
    for approved in (started, held):
        served.run("approve", approved)

    result = served.run("approve", "--json")

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["event_id"] == earlier


def test_an_event_that_no_vm_was_told_of_needs_no_approval(served: Served) -> None:
    """It waits for another scope on its host, and holds nobody back."""
    served.start(served.steered.switch_on("web")).result()
    served.run("maintain", "--host", "rack1")

    result = served.run("approve", "--json")

    assert json.loads(result.stdout)["resources"] == ["web"]


def test_where_no_event_can_be_approved_those_that_are_open_are_listed(served: Served) -> None:
    started = served.schedule("web")
    served.run("approve", started)

    result = served.run("approve")

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: no event can be approved",
        "Open events:",
        f"  {started}  Reboot Started of web",
    ]


def test_the_only_event_that_has_started_is_completed_without_its_id(served: Served) -> None:
    waiting = served.schedule("report")
    too_early = served.run("complete")
    started = served.schedule("web")
    served.run("approve", started)

    result = served.run("complete", "--json")

    assert too_early.stderr.startswith("error: no event has started\nOpen events:\n")
    assert waiting in too_early.stderr
    assert json.loads(result.stdout)["event_id"] == started


def test_an_open_event_goes_before_those_that_are_over(served: Served) -> None:
    served.run("cancel", served.schedule("web"))
    served.schedule("report")

    assert "Reboot Started" in served.run("approve", "0000").stdout


def test_an_event_that_is_over_is_found_when_no_open_one_fits(served: Served) -> None:
    served.run("cancel", served.schedule("web"))

    result = served.run("cancel", "0000")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: event {event_id(1)} is over\n")


def test_a_short_notice_is_told_which_flag_allows_it(served: Served) -> None:
    result = served.run("schedule", "reboot", "--vm", "web", "--notice", "1s")

    assert result.exit_code == 1
    assert "--short-notice" in result.stderr
    assert "short_notice" not in result.stderr


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("schedule reboot web", "VMs are named with --vm: forewarned schedule reboot --vm web"),
        (
            "schedule freeze web 'my vm' --duration 9s",
            "VMs are named with --vm: forewarned schedule freeze --vm web --vm 'my vm'",
        ),
        (
            "schedule reboot web --vm db-0",
            "VMs are named with --vm: forewarned schedule reboot --vm web",
        ),
        ("maintain rack1", "hosts are named with --host: forewarned maintain --host rack1"),
        (
            "maintain avset/db",
            "scopes are named with --scope: forewarned maintain --scope avset/db",
        ),
    ],
)
def test_a_name_without_its_option_is_told_which_it_belongs_to(typed: str, hint: str) -> None:
    result = invoke(*shlex.split(typed), FOREWARNED_CONTROL=NOWHERE)

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: {hint}"
    assert result.stderr.splitlines()[0].endswith(" [OPTIONS]")


def test_an_unknown_type_of_event_is_told_the_types_there_are() -> None:
    result = invoke("schedule", "explode", "--vm", "web", FOREWARNED_CONTROL=NOWHERE)

    assert result.exit_code == 2
    assert (
        "Error: 'explode' is not an event type (freeze, reboot, redeploy, preempt, terminate)"
        in result.stderr
    )


def test_a_real_clock_can_not_be_moved() -> None:
    with serving(SystemClock()) as served:
        result = served.run("clock", "step", "1m")

    assert result.exit_code == 1
    assert "--clock paused" in result.stderr


def test_a_server_whose_store_is_down_has_failed(served: Served) -> None:
    served.steered.store.is_down = True

    result = served.run("events")

    assert result.exit_code == 4
    assert "the disk is full" in result.stderr


def test_a_server_that_is_none_of_ours_has_failed() -> None:
    other = httpx2.MockTransport(lambda _: httpx2.Response(200, text="<html>"))

    for words in (["events"], ["events", "--json"]):
        result = click.testing.CliRunner().invoke(cli, words, obj=other)

        assert result.exit_code == 4


@pytest.mark.parametrize(
    "words",
    [
        "events",
        "explain 0",
        "history",
        "fleet show",
        "schedule reboot --vm web",
        "fail rack1",
        "predict rack1",
        "maintain --host rack1",
        "approve 0",
        "cancel 0",
        "complete 0",
        "clock",
        "clock step 1m",
        "events --watch",
        "settings --running",
    ],
)
def test_every_command_says_that_no_server_answers(words: str) -> None:
    result = invoke(*words.split(), FOREWARNED_CONTROL=NOWHERE)

    assert result.exit_code == 3
    assert f"no server answers at http://{NOWHERE}" in result.stderr
    assert "Start it with 'forewarned serve' (in a clone: 'make run')." in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        "schedule reboot",
        "schedule reboot --vm web --notice soon",
        "schedule wobble --vm web",
        "maintain",
        "maintain --host a --scope b",
        "maintain --host a --type wobble",
        "clock step",
        "clock step 1m --to 2026-01-05T12:00:00Z",
        "clock step --to tomorrow",
        "clock step --to 2026-01-05T12:00:00",
        "clock speed fast",
        "clock speed nan",
        "clock speed 1e999",
        "events --watch --all",
        "events --limit 0",
        "completion tcsh",
        "wobble",
        "events --control ftp://x",
        "settings --clock wobble",
        "serve --clock wobble",
        "serve --config /nowhere/forewarned.toml",
    ],
)
def test_wrong_usage_exits_with_2_before_any_server_is_asked(words: str) -> None:
    result = invoke(*words.split(), FOREWARNED_CONTROL=NOWHERE)

    assert result.exit_code == 2
    assert result.stderr


def test_a_command_with_a_slip_is_suggested() -> None:
    assert "Did you mean 'events'?" in invoke("event").stderr
    assert "Did you mean 'reboot'?" in invoke("schedule", "rebot").stderr


def test_the_clock_is_told_to_go_back_in_vain(served: Served) -> None:
    result = served.run("clock", "step", "--to", "2026-01-05T11:00:00Z")

    assert result.exit_code == 1
    assert "Time only moves forward" in result.stderr


def test_the_nearest_control_option_counts(served: Served) -> None:
    result = invoke("--control", NOWHERE, "clock", "--control", f"http://{served.address}/")

    assert result.exit_code == 0


def test_a_wrong_fleet_file_is_refused_with_file_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('[[vms]]\nname = "web"\nadress = "10.0.0.1"\n')

    for command in ("check", "apply"):
        result = invoke("fleet", command, str(file), FOREWARNED_CONTROL=NOWHERE)

        assert result.exit_code == 1
        assert result.stderr.splitlines()[1].startswith(f"{file}:3: vms[0]")


def test_with_json_mistakes_of_a_file_are_in_the_message(tmp_path: Path) -> None:
    result = invoke("fleet", "check", str(tmp_path / "none.toml"), "--json")

    assert result.exit_code == 1
    assert "none.toml: No such file" in json.loads(result.stderr)["error"]["message"]
