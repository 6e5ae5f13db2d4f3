"""The standard scenarios are the same to every handler, however quick it or its machine is."""

from datetime import timedelta
from pathlib import Path

import httpx2

from forewarned.scenarios import steps
from forewarned.scenarios.catalogue import standard
from forewarned.scenarios.expectations import judge
from forewarned.scenarios.model import BackedOff
from forewarned.scenarios.player import play
from forewarned.scenarios.report import Standing
from forewarned.scenarios.stages.in_process import EmulatorStage
from forewarned.testing._handlers import FunctionHandler
from tests.scenarios.builders import at, read, step
from tests.scenarios.small_handler import HEADERS

SCENARIOS = {scenario.name: scenario for scenario in standard()}


async def test_no_handler_is_quick_enough_to_read_what_is_in_the_gap(tmp_path: Path) -> None:
    incarnations: list[int] = []

    async def read_all_the_time(endpoint: str) -> None:
        url = f"{endpoint}/metadata/scheduledevents?api-version=2020-07-01"
        async with httpx2.AsyncClient(headers=HEADERS) as client:
            while True:
                document = (await client.get(url)).json()
                incarnations.append(document["DocumentIncarnation"])
                for event in document["Events"]:
                    body = {"StartRequests": [{"EventId": event["EventId"]}]}
                    await client.post(url, json=body)

    async with EmulatorStage() as stage:
        handler = FunctionHandler(read_all_the_time)
        report = await play(SCENARIOS["incarnation-gap"], stage, handler, folder=tmp_path)

    first = incarnations[0]
    assert report.is_passed
    assert not {first + 1, first + 2, first + 3, first + 4} & set(incarnations)


def test_a_handler_that_reads_once_a_second_has_waited_after_429() -> None:
    """Also where a request takes a while, and the next is sent at the full second all the same."""
    scenario = SCENARIOS["too-many-requests"]
    reads = [at(2.2, read(429)), at(3.0, read(429)), at(4.0, read(429)), at(5.0, read())]

    findings = judge(scenario, [*step(1, 0), *reads], now=timedelta(seconds=9), is_over=True)

    [finding] = [each for each in findings if isinstance(each.expectation, BackedOff)]
    assert finding.standing is Standing.HELD


def test_a_handler_is_not_killed_while_its_approval_is_being_answered() -> None:
    """One that reads and approves at once may read twice before it has the answer."""
    played = SCENARIOS["killed"].steps
    kill = next(index for index, each in enumerate(played) if isinstance(each, steps.KillHandler))

    wait = played[kill - 1]

    assert isinstance(wait, steps.WaitAsked)
    assert wait.times >= 3


def test_every_status_that_clients_are_to_outlast_is_answered_somewhere() -> None:
    faults = [
        each.fault.status
        for scenario in SCENARIOS.values()
        for each in scenario.steps
        if isinstance(each, steps.AddFault)
    ]

    assert {410, 429, 500, 503} <= set(faults)
