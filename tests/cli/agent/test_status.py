"""What a running agent is asked: `forewarned agent status` and `forewarned agent explain`."""

import json
from datetime import timedelta

import msgspec
import pytest

from forewarned.agent.status.wire import EventStatus, Stage, StepStatus
from tests.builders import DAY, MINUTE
from tests.cli.agents import EVENT, OTHER, an_agent, an_event, answering
from tests.cli.served import invoke


def test_status_tells_how_the_agent_is_and_what_it_does_about_open_events() -> None:
    with an_agent(an_event(), an_event(OTHER, stage=Stage.FINISHED)) as address:
        result = invoke("agent", "status", "--agent", address)
        every = invoke("agent", "status", "--all", FOREWARNED_AGENT=address)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "web_0  healthy, not ready: it prepares for a Reboot",
        "  reads          http://169.254.169.254",
        "  document       incarnation 4, read 1s ago",
        "  running since  2026-01-05 11:59:00 UTC (1m ago)",
        "  version        1",
        "",
        "Event    Type   Stage     Left Rule    Waits for",
        "0000000A Reboot preparing 10m  reboots drain: 3 sessions of web/one",
    ]
    assert "0000000B Reboot finished" in every.stdout


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (3 * DAY, "2026-01-08 11:59:59 UTC at that read, 3d ahead of this VM's"),
        (-10 * MINUTE, "2026-01-05 11:49:59 UTC at that read, 10m behind this VM's"),
    ],
)
def test_the_services_clock_and_the_vms_are_told_apart(ahead: timedelta, told: str) -> None:
    """An emulator's clock can be moved; the agent has not run for three days because of that."""
    with an_agent(an_event(), ahead=ahead) as address:
        status = invoke("agent", "status", "--agent", address).stdout.splitlines()
        explained = invoke("agent", "explain", "--agent", address).stdout

    assert "  document         incarnation 4, read 1s ago" in status
    assert "  running since    2026-01-05 11:59:00 UTC (1m ago)" in status
    assert f"  service's clock  {told}" in status
    assert "2026-01-05 12:10:00 UTC by the service's clock" in explained


def test_status_shows_what_somebody_has_to_see_to_though_it_is_over() -> None:
    over = an_event(stage=Stage.FINISHED)
    left = msgspec.structs.replace(over, not_put_back=("drain",))
    with an_agent(left, warnings=("drain was not put\nback",)) as address:
        shown = invoke("agent", "status", "--agent", address).stdout.splitlines()

    assert "Warning: drain was not put\ufffdback" in shown
    assert any(line.startswith("0000000A Reboot finished") for line in shown)


def test_an_agent_without_events_says_so() -> None:
    with an_agent() as address:
        result = invoke("agent", "status", "--agent", address)

    assert result.stdout.startswith("web_0  healthy, ready\n")
    assert result.stdout.endswith("No events.\n")


def test_as_json_status_is_what_the_agent_said() -> None:
    with an_agent(an_event()) as address:
        status = invoke("agent", "status", "--agent", address, "--json")
        event = invoke("agent", "explain", "--agent", address, "--json")

    assert json.loads(status.stdout)["events"][0]["event_id"] == EVENT
    assert json.loads(event.stdout) == json.loads(status.stdout)["events"][0]


def test_explain_names_the_rule_the_step_what_it_waits_for_and_the_time_left() -> None:
    with an_agent(an_event(), an_event(OTHER, stage=Stage.FINISHED)) as address:
        result = invoke("agent", "explain", "--agent", address)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"Reboot {EVENT} preparing",
        "  VMs          web_0, web_1",
        "  source       Platform",
        "  duration     unknown",
        "  NotBefore    2026-01-05 12:10:00 UTC",
        "",
        "  rule         reboots",
        "  step         drain (prepare), for 30s at most",
        "  waits for    drain: 3 sessions of web/one",
        "  time left    10m",
        '  approval     approve = "when-ready", leader = "each"; not given yet',
        "",
        "Phase   Step            State   Took Detail",
        "prepare tell (optional) failed  2s",
        "prepare drain           running",
        "undo    drain           to come      ready web/one",
    ]


def test_a_step_of_which_nobody_knows_how_long_it_took_is_not_said_to_have_taken_no_time() -> None:
    cut_short = StepStatus(phase="prepare", step="app", state="interrupted")
    event = msgspec.structs.replace(
        an_event(stage=Stage.NOT_PREPARED),
        steps=(cut_short,),
        not_approved_because="step 'app' is required and was interrupted",
    )
    with an_agent(event) as address:
        lines = invoke("agent", "explain", "--agent", address).stdout.splitlines()

    assert lines[0] == f"Reboot {EVENT} not prepared"
    assert lines[-1].split() == ["prepare", "app", "interrupted", "unknown"]


def test_an_event_is_found_by_the_beginning_of_its_id() -> None:
    with an_agent(an_event(stage=Stage.FINISHED), an_event(OTHER)) as address:
        finished = invoke("agent", "explain", "0000000a", "--agent", address)
        only_open = invoke("agent", "explain", "0000", "--agent", address)
        unknown = invoke("agent", "explain", "F", "--agent", address)

    assert EVENT in finished.stdout
    assert OTHER in only_open.stdout
    assert unknown.exit_code == 1
    assert "the agent knows no event 'F'" in unknown.stderr


def test_where_several_events_fit_they_are_listed() -> None:
    with an_agent(an_event(), an_event(OTHER)) as address:
        result = invoke("agent", "explain", "--agent", address)

    assert result.exit_code == 1
    assert "several events are open: say which" in result.stderr
    assert f"{OTHER}  Reboot of web_0, web_1" in result.stderr


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (msgspec.structs.replace(an_event(), approved=True), "approval     given"),
        (
            msgspec.structs.replace(an_event(), not_approved_because="step 'x' vetoes"),
            'approve = "when-ready", leader = "each"; not given: step',
        ),
        (msgspec.structs.replace(an_event(), rule=""), "rule         none: the agent does nothing"),
        (an_event(stage=Stage.RESTORING), "VM restarted  yes"),
        (
            msgspec.structs.replace(an_event(), not_put_back=("drain",)),
            "drain: undo its changes by hand",
        ),
        (
            msgspec.structs.replace(an_event(), not_put_back=("drain", "stop")),
            "drain, stop: undo their changes by hand",
        ),
        (msgspec.structs.replace(an_event(), reappeared=True), "shown again  after it was gone"),
    ],
)
def test_explain_tells_why(event: EventStatus, told: str) -> None:
    with an_agent(event) as address:
        assert told in invoke("agent", "explain", "--agent", address).stdout


def test_a_name_can_not_steer_the_terminal() -> None:
    event = msgspec.structs.replace(an_event(), waits_for="\x1b[2Jgone", resources=("a\nb",))
    with an_agent(event) as address:
        shown = invoke("agent", "explain", "--agent", address).stdout
        shown += invoke("agent", "status", "--agent", address).stdout

    assert "\x1b" not in shown
    assert "a\ufffdb" in shown


def test_without_an_agent_it_is_said_how_to_start_one() -> None:
    result = invoke("agent", "status", "--agent", "127.0.0.1:1")

    assert result.exit_code == 3
    assert "Start it with 'forewarned agent run'." in result.stderr


def test_what_is_no_agent_is_told_from_one() -> None:
    with answering(b"{}") as address:
        strange = invoke("agent", "status", "--agent", address)
    with answering(b"", status=404) as address:
        missing = invoke("agent", "status", "--agent", address)

    assert strange.exit_code == missing.exit_code == 4
    assert "is not an agent: it answered 404" in missing.stderr
    assert invoke("agent", "status", "--agent", "no address").exit_code == 2
