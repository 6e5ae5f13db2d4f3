"""Scenarios played against small handlers in this process, on a service of their own."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from forewarned.scenarios.file import parse
from forewarned.scenarios.observations import EventMoved, Request, StepEnded
from forewarned.scenarios.player import play
from forewarned.scenarios.ports import StageError
from forewarned.scenarios.report import Report, Standing
from forewarned.scenarios.stages.in_process import EmulatorStage
from forewarned.scenarios.steps import Terminate
from forewarned.testing._handlers import AsyncFunction, FunctionHandler
from tests.scenarios.small_handler import small_handler

Play = Callable[[str, AsyncFunction], Awaitable[Report]]

REBOOT = """
[[step]]
do = "schedule"
name = "reboot"
type = "Reboot"
"""
APPROVED = """
[[expect]]
that = "approved"
event = "reboot"
within = "30s"
"""


@pytest.fixture
def playing(tmp_path: Path) -> Play:
    async def playing(text: str, function: AsyncFunction) -> Report:
        scenario = parse(f'name = "it"\ntitle = "It"\n{text}')
        async with EmulatorStage() as stage:
            return await play(scenario, stage, FunctionHandler(function), folder=tmp_path)

    return playing


def why(report: Report) -> list[str]:
    return [f"{each.title}: {each.why}" for each in report.broken]


async def test_a_handler_that_does_what_is_expected_passes(playing: Play) -> None:
    report = await playing(
        REBOOT
        + """
        [[step]]
        do = "wait_approved"
        event = "reboot"

        [[step]]
        do = "advance"
        by = "15m"

        [[step]]
        do = "wait_asked"
        times = 2

        [[expect]]
        that = "approved_once"
        event = "reboot"

        [[expect]]
        that = "sent_header"
        header = "Metadata"
        value = "true"

        [[expect]]
        that = "used_version"
        at_least = "2019-01-01"

        [[expect]]
        that = "not_proxied"

        [[expect]]
        that = "running"
        """
        + APPROVED,
        small_handler(),
    )

    assert why(report) == []
    assert report.is_passed


async def test_a_second_approval_is_found(playing: Play) -> None:
    # A second approval comes before the next read that begins after the first one.
    both = '[[step]]\ndo = "wait_approved"\nevent = "reboot"\n[[step]]\ndo = "wait_asked"\n'
    once = '[[expect]]\nthat = "approved_once"\nevent = "reboot"\n'

    report = await playing(REBOOT + both + once + APPROVED, small_handler(times=2))

    assert why(report) == ["the handler approves reboot once: it was approved twice"]


async def test_a_wait_that_times_out_ends_the_scenario_and_says_what_the_handler_asked(
    playing: Play,
) -> None:
    wait = '[[step]]\ndo = "wait_approved"\nevent = "reboot"\nwithin = "200ms"\n'
    after = '[[step]]\ndo = "pause"\nfor = "10m"\n'

    report = await playing(REBOOT + wait + after + APPROVED, small_handler(wants=lambda _: False))

    first, second = report.findings
    assert first.title == "the handler approves reboot within 200ms"
    assert first.why.startswith("it did not approve; its last request was 0s ago: GET /metadata/")
    assert second.standing is Standing.UNREACHED


async def test_a_handler_that_ends_by_itself_is_not_waited_for(playing: Play) -> None:
    async def crash(_: str) -> None:
        raise ZeroDivisionError("by zero")

    report = await playing(APPROVED.replace("reboot", "x") + REBOOT.replace("reboot", "x"), crash)

    assert report.findings[0].why == (
        "it read its document 0 times; it exited with code 1; it has sent no request so far"
    )
    assert any("ZeroDivisionError" in str(each.fact) for each in report.observations)


async def test_an_approval_before_its_probe_holds_is_found_and_one_after_it_passes(
    playing: Play, tmp_path: Path
) -> None:
    text = REBOOT + '[[expect]]\nthat = "approved_after_probe"\nevent = "reboot"\n'
    text += 'probe = { file = "drained" }\n' + APPROVED

    early = await playing(text, small_handler())
    careful = await playing(text, small_handler(before=(tmp_path / "drained").touch))

    assert [each.why for each in early.broken] == [
        "when it approved, this was not true: the file 'drained' exists"
    ]
    assert why(careful) == []


async def test_a_command_is_a_probe_too(playing: Play, tmp_path: Path) -> None:
    text = '[[expect]]\nthat = "probe"\nprobe = { command = ["test", "-e", "x"] }\nwithin = "60s"\n'
    never = '[[expect]]\nthat = "no_probe"\nprobe = { file = "y" }\n'

    report = await playing(REBOOT + text + never, small_handler(before=(tmp_path / "x").touch))

    assert why(report) == []


async def test_the_handler_recovers_from_faults_and_from_a_restart_of_the_service(
    playing: Play,
) -> None:
    report = await playing(
        """
        [[step]]
        do = "fault"
        name = "errors"
        status = 500
        times = 3

        [[step]]
        do = "wait_asked"
        times = 4

        [[step]]
        do = "restart_service"
        name = "restart"
        down = "100ms"

        [[expect]]
        that = "recovered"
        after = "errors"
        within = "60s"

        [[expect]]
        that = "recovered"
        after = "restart"
        within = "60s"
        """,
        small_handler(),
    )

    assert why(report) == []
    statuses = [each.fact.status for each in report.observations if isinstance(each.fact, Request)]
    assert statuses.count(500) == 3


async def test_a_handler_that_is_killed_is_started_again_by_a_step(playing: Play) -> None:
    again = '[[step]]\ndo = "kill_handler"\n[[step]]\ndo = "start_handler"\nname = "again"\n'
    text = '[[expect]]\nthat = "recovered"\nafter = "again"\nwithin = "60s"\n'
    text += '[[expect]]\nthat = "running"\n'

    report = await playing(again + text, small_handler())

    assert why(report) == []


async def test_what_happens_to_other_vms_and_hosts_is_played(playing: Play) -> None:
    """Maintenance of a host is one event for each scope: the handler's own counts."""
    report = await playing(
        """
        vm = "a"

        [[fleet]]
        name = "a"
        host = "h"
        availability_set = "set"

        [[fleet]]
        name = "b"
        host = "h"

        [[fleet]]
        name = "c"
        scale_set = "batch"
        terminate_notice = "5m"

        [[fleet]]
        name = "d"
        availability_set = "set"

        [[step]]
        do = "maintain"
        name = "maintained"

        [[step]]
        do = "wait_approved"
        event = "maintained"

        [[step]]
        do = "terminate"
        name = "gone"
        vms = ["c"]

        [[step]]
        do = "schedule"
        name = "other"
        type = "Reboot"
        vms = ["d"]

        [[step]]
        do = "approve"
        event = "other"
        by = "d"

        [[step]]
        do = "schedule"
        name = "off"
        type = "Reboot"
        vms = ["d"]

        [[step]]
        do = "cancel"
        event = "off"

        [[step]]
        do = "fail"
        name = "failure"

        [[step]]
        do = "complete"
        event = "failure"

        [[step]]
        do = "wait_asked"

        [[expect]]
        that = "approved"
        event = "maintained"
        within = "60s"

        [[expect]]
        that = "not_approved"
        event = "failure"

        [[expect]]
        that = "not_approved"
        event = "gone"
        """,
        small_handler(wants=lambda event: "a" in event["Resources"] and event["NotBefore"] != ""),
    )

    assert why(report) == []


async def test_of_a_deletion_only_what_the_handlers_vm_can_see_is_its_event() -> None:
    """As with maintenance: VMs of other scopes have events of their own."""
    text = """
        [[fleet]]
        name = "a"
        scale_set = "one"
        terminate_notice = "5m"

        [[fleet]]
        name = "b"
        scale_set = "two"
        terminate_notice = "5m"

        [[step]]
        do = "terminate"
        name = "gone"
        vms = ["a", "b"]

        [[expect]]
        that = "approved"
        event = "gone"
        within = "60s"
        """
    scenario = parse(f'name = "it"\ntitle = "It"\n{text}')
    moved: list[EventMoved] = []

    async with EmulatorStage() as stage:
        await stage.set_up(
            scenario, lambda fact: moved.append(fact) if isinstance(fact, EventMoved) else None
        )
        made = await stage.carry_out(Terminate(vms=("a", "b"), name="gone"), {})

    assert [each.resources for each in moved] == [("a",), ("b",)]
    assert made == (moved[0].event_id,)


async def test_a_step_that_the_rules_refuse_is_a_failure_of_the_scenario(playing: Play) -> None:
    twice = '[[step]]\ndo = "cancel"\nevent = "reboot"\n' * 2

    report = await playing(REBOOT + twice + APPROVED, small_handler(wants=lambda _: False))

    [failed] = [
        each.fact
        for each in report.observations
        if isinstance(each.fact, StepEnded) and each.fact.failure
    ]
    assert failed.index == 2
    assert report.findings[0].title == "the step cancel can be played"


async def test_a_service_that_can_not_listen_is_an_error_of_the_stage(tmp_path: Path) -> None:
    def no_socket() -> object:
        raise OSError(98, "Address already in use")

    scenario = parse(f'name = "it"\ntitle = "It"\n{REBOOT}{APPROVED}')

    with pytest.raises(StageError, match="Address already in use"):
        async with EmulatorStage(listen=no_socket) as stage:  # type: ignore[arg-type]  # never returns
            await play(scenario, stage, FunctionHandler(small_handler()), folder=tmp_path)
