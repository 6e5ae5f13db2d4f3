"""Playing scenario files in a test."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from forewarned.scenarios.account import account
from forewarned.scenarios.file import ScenarioFileError, load
from forewarned.scenarios.player import play
from forewarned.scenarios.ports import Handler
from forewarned.scenarios.report import Report
from forewarned.scenarios.stages.in_process import EmulatorStage
from forewarned.testing._handlers import FunctionHandler

__tracebackhide__ = True


class ScenarioFailedError(AssertionError):
    """A handler did not do what a scenario expects of it. The message says what it did."""

    # What pytest prints is where people import it from.
    __module__ = "forewarned.testing"

    def __init__(self, report: Report) -> None:
        super().__init__(account(report))
        self.report = report


async def play_file(
    file: Path, handler: Handler | Callable[[str], Awaitable[object]], *, patience: float
) -> Report:
    """Raises ValueError for a file with mistakes, ScenarioFailedError."""
    try:
        scenario = load(file)
    except ScenarioFileError as error:
        raise ValueError(str(error)) from None
    played = FunctionHandler(handler) if callable(handler) else handler
    with TemporaryDirectory(prefix="forewarned-") as folder:
        async with EmulatorStage() as stage:
            report = await play(scenario, stage, played, folder=Path(folder), patience=patience)
    if not report.is_passed:
        raise ScenarioFailedError(report)
    return report
