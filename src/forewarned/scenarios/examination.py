"""An examination: scenarios played one after another or several at once, each on its own.

Every scenario has its own emulator, its own sandbox with its own network, a fresh handler and an
empty folder. Invariant: no scenario knows of another, so their order changes nothing.
"""

import asyncio
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from forewarned.config.values import Address
from forewarned.metadata.http import sockets
from forewarned.scenarios.handlers.child import ChildHandler
from forewarned.scenarios.handlers.command import CommandLine
from forewarned.scenarios.isolation.sandbox import LeftRunningError, Sandbox
from forewarned.scenarios.model import Grade, Scenario
from forewarned.scenarios.observations import Observation, Request
from forewarned.scenarios.player import play
from forewarned.scenarios.report import Finding, Report, Standing
from forewarned.scenarios.scenario_observer import Hear
from forewarned.scenarios.stages.emulator import Listen
from forewarned.scenarios.stages.in_process import EmulatorStage

METADATA: Final = Address("169.254.169.254", 80)
"""Where a VM on Azure finds the service."""
_ENOUGH: Final = 2
"""Scenarios in which a handler gets nothing from the service, after which no other is begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examinee:
    """The handler, and how it is run."""

    command: CommandLine
    is_isolated: bool
    """Whether it has namespaces of its own, in which the service is where Azure has it."""
    listen: Address | None = None
    """Where the service listens for it, if not isolated; None for any free port."""
    private: Sequence[str] = ()
    """Folders that are empty for each scenario; isolated only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A scenario is being played."""

    scenario: Scenario


Progress = Started | Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an examination."""

    reports: tuple[Report, ...]
    unplayed: tuple[Scenario, ...]
    """Those that were not begun, because the handler got nothing from the service."""
    grade: Grade | None
    """The highest that was reached; None for none."""
    is_graded: bool
    """Whether enough was played to tell a grade."""
    command: str
    began_at: datetime
    took: timedelta

    @property
    def failed(self) -> tuple[Report, ...]:
        return tuple(each for each in self.reports if not each.is_passed)

    @property
    def is_passed(self) -> bool:
        return not self.failed and not self.unplayed


async def examine(
    scenarios: Sequence[Scenario],
    examinee: Examinee,
    *,
    at_once: int,
    patience: float = 1.0,
    tell: Callable[[Progress], None] = lambda _: None,
) -> list[Report]:
    """The reports, in the order of the scenarios.

    Of a handler that asks nothing, or is always refused, only of the first scenarios. Raises
    NamespaceError, StageError, SandboxError.
    """
    turns = asyncio.Semaphore(at_once)
    is_served = False
    ended = 0

    def hear(observation: Observation) -> None:
        nonlocal is_served
        if isinstance(observation.fact, Request) and observation.fact.is_answered:
            is_served = True

    async def take_turn(scenario: Scenario) -> Report | None:
        nonlocal ended
        async with turns:
            if ended >= _ENOUGH and not is_served:
                return None
            tell(Started(scenario=scenario))
            report = await _played(scenario, examinee, patience, hear)
            ended += 1
            tell(report)
            return report

    tasks = [asyncio.create_task(take_turn(scenario)) for scenario in scenarios]
    try:
        return [report for report in await asyncio.gather(*tasks) if report is not None]
    finally:
        # When one can't be played at all, or the examination is interrupted.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def grade_of(reports: Sequence[Report]) -> Grade | None:
    """The highest grade whose scenarios and all those of lower grades are passed; None for none.

    A grade that no scenario was played of counts for nothing.
    """
    reached = None
    for grade in Grade:
        of_grade = [each for each in reports if each.scenario.grade is grade]
        if not of_grade or not all(each.is_passed for each in of_grade):
            return reached
        reached = grade
    return reached


async def _played(scenario: Scenario, examinee: Examinee, patience: float, hear: Hear) -> Report:
    report: Report | None = None
    try:
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="forewarned-exam-", ignore_cleanup_errors=True)
            )
            sandbox = await stack.enter_async_context(
                Sandbox(
                    addresses=[METADATA.host],
                    is_isolated=examinee.is_isolated,
                    hostname=scenario.handler_vm,
                    private=examinee.private,
                )
            )
            stage = await stack.enter_async_context(_stage(examinee, sandbox))
            handler = ChildHandler(examinee.command, sandbox)
            report = await play(
                scenario, stage, handler, hear, folder=Path(folder), patience=patience
            )
    except LeftRunningError as error:
        if report is None:
            raise
        finding = Finding(
            expectation=None,
            title="the handler ends when it is killed",
            standing=Standing.BROKEN,
            why=str(error),
        )
        report = replace(report, findings=(*report.findings, finding))
    return report


def _stage(examinee: Examinee, sandbox: Sandbox) -> EmulatorStage:
    if examinee.is_isolated:
        listen: Listen = partial(sandbox.listen, METADATA.host, METADATA.port)
        # With its port, because curl takes another than 80 for that of a proxy.
        return EmulatorStage(listen=listen, url=f"http://{METADATA}")
    if examinee.listen is None:
        return EmulatorStage()
    return EmulatorStage(listen=partial(_listener, examinee.listen))


async def _listener(at: Address) -> socket.socket:
    return sockets.listen(at.host, at.port)
