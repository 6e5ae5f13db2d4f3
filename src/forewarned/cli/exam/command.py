"""`forewarned exam`: which scenarios, how the handler is run, and where reports are written."""

import asyncio
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from forewarned import __version__
from forewarned.cli.commands.serve import refuse_missing_packages
from forewarned.cli.failures import ExitCode, RefusedError, UsageError
from forewarned.cli.session import json_option, printed_as_json, wants_json
from forewarned.clock import monotonic, wall_clock
from forewarned.config.mistakes import ExpectedError
from forewarned.config.values import Address

if TYPE_CHECKING:
    from forewarned.scenarios.examination import Examinee, Outcome
    from forewarned.scenarios.handlers.command import CommandLine
    from forewarned.scenarios.model import Scenario
    from forewarned.scenarios.report import Report

_AT_ONCE: Final = 8
_TERMINATED: Final = 128 + signal.SIGTERM
_GRADES: Final = ("essential", "robust", "exemplary")
_TELL: Final = (
    "tell the handler where the service is: {endpoint} in its arguments stands for the URL,",
    "--endpoint-env NAME puts it in a variable, --listen HOST:PORT serves at the address it uses.",
)
_CHOICES: Final = (
    "Allow user namespaces, or run as root; in a container, use 'docker run --privileged'.",
    f"Or {_TELL[0]}",
    _TELL[1],
)


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--list", "wants_list", is_flag=True, help="List the scenarios, and play none.")
@click.option("--only", multiple=True, metavar="NAME", help="Play only this scenario; repeatable.")
@click.option(
    "--grade",
    type=click.Choice(_GRADES),
    help="Play the scenarios up to this grade [default: all].",
)
@click.option(
    "--scenario",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Play this file instead of the standard examination; repeatable.",
)
@click.option(
    "--isolation",
    type=click.Choice(["auto", "namespace", "none"]),
    default="auto",
    show_default=True,
    help="Whether the handler gets namespaces, in which 169.254.169.254 is the service.",
)
@click.option(
    "--endpoint-env", metavar="NAME", help="Variable that tells the handler the service's URL."
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Serve at this address; implies --isolation none and --at-once 1.",
)
@click.option(
    "--private",
    multiple=True,
    metavar="FOLDER",
    help="Give the handler an empty FOLDER in each scenario, in a namespace; repeatable.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=_AT_ONCE,
    show_default=True,
    metavar="NUMBER",
    help="How many scenarios are played at the same time.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0.1, 100),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Multiplies how long the handler may take, for slow machines.",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a report for CI systems, as JUnit's XML.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a report as one page, with a timeline of each scenario.",
)
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
def exam(
    *,
    wants_list: bool,
    only: tuple[str, ...],
    grade: str | None,
    files: tuple[Path, ...],
    isolation: str,
    endpoint_env: str | None,
    listen: str | None,
    private: tuple[str, ...],
    at_once: int,
    patience: float,
    junit: Path | None,
    html: Path | None,
    command: tuple[str, ...],
) -> None:
    """Examine COMMAND, a handler of scheduled events.

    Each scenario is played on an emulator of its own, with a fresh handler. On Linux, the handler
    finds the service at 169.254.169.254, as on Azure; root is not needed. {endpoint}, {vm} and
    {folder} in COMMAND stand for the URL of the service, the VM's name, and an empty folder.

    The exit code is 0 if the handler passes every scenario, and 1 if it fails any.
    """
    refuse_missing_packages()
    from forewarned.cli.exam import pages
    from forewarned.scenarios.examination import Outcome, grade_of
    from forewarned.scenarios.handlers.command import CommandLine

    scenarios = _scenarios(files, only, grade)
    if wants_list:
        if not printed_as_json(pages.as_listed(scenarios)):
            pages.print_list(scenarios)
        return
    if not command:
        raise UsageError(
            "there is no handler to examine",
            "Put its command after --, as in 'forewarned exam -- ./handler.sh'.",
            code="no_command",
        )
    if shutil.which(command[0]) is None:
        raise UsageError(
            f"can't run {command[0]!r}: it does not exist, or is not executable", code="no_command"
        )
    line = CommandLine(words=command, endpoint_variable=endpoint_env)
    examinee = _examinee(line, isolation, _address(listen), private)
    if examinee.listen is not None:
        at_once = 1
    began, began_at = monotonic(), wall_clock()
    reports = _examined(scenarios, examinee, at_once=at_once, patience=patience)
    outcome = Outcome(
        reports=tuple(reports),
        # They are begun in order.
        unplayed=scenarios[len(reports) :],
        # A grade needs the whole examination.
        grade=None if only or files else grade_of(reports),
        is_graded=not (only or files),
        command=shlex.join(command),
        began_at=began_at,
        took=monotonic() - began,
    )
    _write(outcome, junit=junit, html=html)
    if wants_json(click.get_current_context()):
        from forewarned.scenarios.formats import wire

        printed_as_json(wire.examination(outcome))
    else:
        pages.print_outcome(outcome)
    if not outcome.is_passed:
        click.get_current_context().exit(ExitCode.REFUSED)


def _scenarios(
    files: Sequence[Path], only: Sequence[str], grade: str | None
) -> "tuple[Scenario, ...]":
    from forewarned.config.mistakes import did_you_mean
    from forewarned.scenarios.catalogue import standard
    from forewarned.scenarios.file import ScenarioFileError, load

    try:
        found = tuple(load(file) for file in files) or standard()
    except ScenarioFileError as error:
        raise UsageError(str(error), code="bad_scenario") from error
    names = [each.name for each in found]
    for name in only:
        if name not in names:
            hint = did_you_mean(name, names)
            raise UsageError(
                f"no scenario is named {name!r}{hint}",
                "'forewarned exam --list' lists them.",
                code="unknown_scenario",
            )
    most = len(_GRADES) if grade is None else _GRADES.index(grade) + 1
    chosen = [each for each in found if each.grade in _GRADES[:most]]
    return tuple(each for each in chosen if not only or each.name in only)


def _address(text: str | None) -> Address | None:
    if text is None:
        return None
    try:
        return Address.parse(text)
    except ExpectedError as error:
        raise UsageError(f"--listen: expected {error}, got {text!r}", code="bad_listen") from error


def _examinee(
    command: "CommandLine", isolation: str, listen: Address | None, private: Sequence[str]
) -> "Examinee":
    """Isolated if that is wanted or possible. Raises RefusedError if there is no way."""
    from forewarned.sandbox.namespace import NamespaceError
    from forewarned.scenarios.examination import Examinee
    from forewarned.scenarios.isolation.sandbox import Sandbox

    is_told = command.has_endpoint or listen is not None
    shared = Examinee(command=command, is_isolated=False, listen=listen)
    if isolation == "none" or listen is not None:
        if private:
            raise UsageError("--private needs a namespace", code="no_namespace")
        if not is_told:
            raise UsageError(
                "--isolation none: a handler with 169.254.169.254 built in would send its requests"
                " to this machine's own endpoint, and might approve real events",
                "Omit --isolation none, so that the handler gets its own network.",
                f"Or {_TELL[0]}",
                _TELL[1],
                code="no_endpoint",
            )
        return shared
    isolated = Examinee(command=command, is_isolated=True, private=private)
    if sys.platform != "linux":
        refused = "only Linux has namespaces"
    else:

        async def attempt() -> None:
            async with Sandbox(is_isolated=True, private=private):
                pass

        try:
            asyncio.run(attempt())
        except NamespaceError as error:
            refused = str(error)
        else:
            return isolated
    if is_told and isolation == "auto" and not private:
        return shared
    raise RefusedError(
        f"can't create namespaces for the handler here ({refused})", *_CHOICES, code="no_namespace"
    )


def _examined(
    scenarios: "Sequence[Scenario]", examinee: "Examinee", *, at_once: int, patience: float
) -> "list[Report]":
    from forewarned.cli.exam.progress import Progress
    from forewarned.sandbox.namespace import NamespaceError
    from forewarned.scenarios.examination import examine
    from forewarned.scenarios.isolation.sandbox import SandboxError
    from forewarned.scenarios.ports import StageError

    with Progress(len(scenarios), is_quiet=wants_json(click.get_current_context())) as progress:

        async def examination() -> "list[Report]":
            task = asyncio.current_task()
            if task is not None:
                # CI systems end what takes too long: as after Ctrl-C, nothing is to be left.
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
            return await examine(
                scenarios, examinee, at_once=at_once, patience=patience, tell=progress.hear
            )

        try:
            return asyncio.run(examination())
        except asyncio.CancelledError:
            click.get_current_context().exit(_TERMINATED)
        except (NamespaceError, StageError, SandboxError) as error:
            raise RefusedError(str(error), code="cannot_examine") from error


def _write(outcome: "Outcome", *, junit: Path | None, html: Path | None) -> None:
    try:
        if junit is not None:
            from forewarned.scenarios.formats.junit import junit as as_junit

            junit.write_bytes(as_junit(outcome))
        if html is not None:
            from forewarned.scenarios.formats.page import page

            html.write_text(page(outcome, version=__version__), encoding="utf-8")
    except OSError as error:
        raise RefusedError(
            f"can't write {error.filename} ({error.strerror})", code="report_not_written"
        ) from error
