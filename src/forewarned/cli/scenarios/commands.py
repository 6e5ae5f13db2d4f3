"""Checking scenario files, and running them against an emulator."""

import asyncio
from datetime import timedelta
from pathlib import Path

import click
import msgspec

from forewarned.cli.failures import CommandError, ExitCode, RefusedError, UsageError
from forewarned.cli.session import Session, with_session
from forewarned.cli.wording import count, plain
from forewarned.config.durations import format_duration
from forewarned.scenarios.account import account
from forewarned.scenarios.file import ScenarioFileError, load
from forewarned.scenarios.formats.narrative import sentence
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.observations import HandlerStarted, Observation
from forewarned.scenarios.report import Report

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def scenario() -> None:
    """Check scenario files, or run one against an emulator.

    A scenario file says what happens to a handler of scheduled events, and what is expected of it.
    """


@scenario.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
def check(files: tuple[Path, ...]) -> None:
    """Report every mistake in scenario files, with its line. Nothing is run."""
    mistakes: list[str] = []
    for file in files:
        try:
            read = load(file)
        except ScenarioFileError as error:
            mistakes += error.mistakes
            continue
        steps, expected = count(len(read.steps), "step"), len(read.expectations)
        click.echo(f"{file}: {read.name}, {steps}, {count(expected, 'expectation')}: ok")
    if mistakes:
        raise RefusedError("\n".join(mistakes), code="bad_scenario")


@scenario.command()
@click.argument("file", metavar="FILE", type=_FILE)
@click.option(
    "--vm",
    metavar="NAME",
    help="The VM whose handler is tested [default: the one that the file names].",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0.1, max=100),
    default=1.0,
    metavar="FACTOR",
    help="Multiply how long the handler may take, for slow machines [default: 1].",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    metavar="DIRECTORY",
    help="The handler's working directory, where probes look for their files [default: the current"
    " one].",
)
@with_session
def run(session: Session, file: Path, vm: str | None, patience: float, folder: Path) -> None:
    """Run the scenario in FILE against a running emulator.

    You run the handler yourself. The scenario's VMs must be in the emulator's fleet, and its clock
    must be one that can be moved. For scenarios that start or end the handler, use 'forewarned
    exam'.
    """
    from forewarned.cli.scenarios.adaptation import playable, renamed

    try:
        read = load(file)
    except ScenarioFileError as error:
        raise UsageError("\n".join(error.mistakes), code="bad_scenario") from error
    read, unseen = playable(read if vm is None else renamed(read, vm))
    for title in unseen:
        click.echo(f"not checked: {title}", err=True)
    report = asyncio.run(_play(session, read, patience=patience, folder=folder))
    lines = [_as_json(report)] if session.is_json else map(plain, account(report).splitlines())
    for line in lines:
        click.echo(line)
    if not report.is_passed:
        click.get_current_context().exit(ExitCode.REFUSED)


def _as_json(report: Report) -> str:
    findings = [
        {"title": each.title, "standing": each.standing, "why": each.why}
        for each in report.findings
    ]
    shown = {
        "scenario": report.scenario.name,
        "passed": report.is_passed,
        "took": format_duration(report.took),
        "findings": findings,
    }
    return msgspec.json.encode(shown).decode()


async def _play(session: Session, read: Scenario, *, patience: float, folder: Path) -> Report:
    from forewarned.cli.scenarios.external_handler import ExternalHandler
    from forewarned.cli.scenarios.running_stage import RunningStage
    from forewarned.scenarios.player import play
    from forewarned.scenarios.ports import StageError

    def tell(observation: Observation) -> None:
        # The operator starts it, and knows when.
        if isinstance(observation.fact, HandlerStarted):
            return
        if line := sentence(observation, read):
            at = timedelta(seconds=round(observation.at.total_seconds()))
            click.echo(f"{at}  {plain(line)}", err=True)

    try:
        async with RunningStage(session.control) as stage:
            handler = ExternalHandler(lambda line: click.echo(line, err=True))
            return await play(read, stage, handler, tell, folder=folder, patience=patience)
    except StageError as error:
        if isinstance(error.__cause__, CommandError):
            raise error.__cause__ from error
        raise CommandError(str(error), code="scenario_not_playable") from error
