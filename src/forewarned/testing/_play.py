"""Playing scenario files in a test."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from forewarned.scenarios.account import account
from forewarned.scenarios.file import ScenarioFileError, load
from forewarned.scenarios.handlers.command import CommandLine
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.player import play
from forewarned.scenarios.ports import Handler
from forewarned.scenarios.report import Report
from forewarned.scenarios.stages.in_process import EmulatorStage
from forewarned.testing._handlers import AsyncFunction, FunctionHandler

__tracebackhide__ = True


class ScenarioFailedError(AssertionError):
    """A handler did not do what a scenario expects of it. The message says what it did."""

    # What pytest prints is where people import it from.
    __module__ = "forewarned.testing"

    def __init__(self, report: Report) -> None:
        super().__init__(account(report))
        self.report = report


async def play_file(
    file: Path, handler: Handler | AsyncFunction | Sequence[str], *, patience: float
) -> Report:
    """Raises ValueError for a file with mistakes, ScenarioFailedError, RuntimeError."""
    if isinstance(handler, str):
        raise TypeError(f"a command is a list of its words, as in {handler.split()!r}")
    try:
        scenario = load(file)
    except ScenarioFileError as error:
        raise ValueError(str(error)) from None
    if isinstance(handler, Sequence):
        report = await _play_program(scenario, handler, patience)
    else:
        played = FunctionHandler(handler) if callable(handler) else handler
        with TemporaryDirectory(prefix="forewarned-") as folder:
            async with EmulatorStage() as stage:
                report = await play(scenario, stage, played, folder=Path(folder), patience=patience)
    if not report.is_passed:
        raise ScenarioFailedError(report)
    return report


async def _play_program(scenario: Scenario, words: Sequence[str], patience: float) -> Report:
    try:
        # What runs programs needs what Windows lacks, and functions are played there too.
        from forewarned.sandbox.namespace import NamespaceError  # noqa: PLC0415
        from forewarned.scenarios.examination import Examinee, examine  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"a command can't be played on this system ({error}): pass a function, or use Linux"
        ) from error
    command = CommandLine(words=words)
    # Not by whether this machine allows namespaces: a test is to do the same on all.
    examinee = Examinee(command=command, is_isolated=not command.has_endpoint)
    try:
        [report] = await examine([scenario], examinee, at_once=1, patience=patience)
    except NamespaceError as error:
        raise RuntimeError(
            f"can't create namespaces for {words[0]!r} here ({error}): put {{endpoint}} in its"
            " arguments, which stands for the service's URL"
        ) from error
    return report
