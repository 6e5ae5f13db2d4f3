"""Start-up files: a fleet in one file or several, and steps beside it.

Invariant: every file is read before anything is applied, and all mistakes are told at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from forewarned.config.mistakes import KeyPath, Mistake, MistakesError, shown
from forewarned.config.tables import TableReader
from forewarned.config.toml import TomlFile
from forewarned.control.fleet.file import FleetFileError, plan_of
from forewarned.control.fleet.wire import IsKnown, parse
from forewarned.control.startup.steps import AnyStep
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.fleet.validation import InvalidFleetError

_STEPS: Final = "step"
_PATTERN: Final = "*.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFile:
    """The steps of one file."""

    file: TomlFile
    steps: tuple[AnyStep, ...]

    @property
    def name(self) -> str:
        """Without its directory, which may be mounted elsewhere tomorrow."""
        return Path(self.file.source).name

    def refusal(self, number: int, why: str) -> MistakesError:
        return self.file.refusal([Mistake(path=(_STEPS, number), why=why)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    plan: FleetPlan | None
    """The fleet of all files together; None if none of them has one."""
    step_files: tuple[StepFile, ...] = ()


class _Steps(msgspec.Struct, frozen=True):
    step: tuple[AnyStep, ...] = ()


def startup_files(place: Path) -> list[Path]:
    """The file, or those of the directory in the order of their names. Raises FleetFileError."""
    try:
        if not place.is_dir():
            return [place]
        # Not `glob`, which takes a directory that can't be read for an empty one.
        found = [path for path in place.iterdir() if path.match(_PATTERN)]
        return sorted(found, key=lambda path: path.name)
    except OSError as error:
        raise FleetFileError([f"{place}: {error.strerror}"]) from error


def load_startup(paths: Iterable[Path], *, is_known: IsKnown = lambda _: False) -> Startup:
    """`is_known` is as for `parse`. Raises FleetFileError."""
    files: list[TomlFile] = []
    step_files: list[StepFile] = []
    mistakes: list[str] = []
    for path in paths:
        try:
            file = TomlFile.load(path, error=FleetFileError)
            files.append(file)
            steps = _steps(file)
        except FleetFileError as error:
            mistakes.extend(error.mistakes)
        else:
            if steps:
                step_files.append(StepFile(file=file, steps=steps))
    mistakes += _same_names(step_files)
    plan = None
    try:
        plan = _plan(files, is_known)
    except FleetFileError as error:
        mistakes.extend(error.mistakes)
    if mistakes:
        raise FleetFileError(mistakes)
    return Startup(plan=plan, step_files=tuple(step_files))


def _steps(file: TomlFile) -> tuple[AnyStep, ...]:
    reader = TableReader()
    found = {_STEPS: file.tables[_STEPS]} if _STEPS in file.tables else {}
    read = reader.table(found, _Steps, ())
    if read is None:
        raise file.refusal(reader.mistakes)
    return read.step


def _same_names(step_files: Iterable[StepFile]) -> Iterator[str]:
    """Which steps were taken is noted by their file's name, wherever it is."""
    known: dict[str, StepFile] = {}
    for each in step_files:
        other = known.setdefault(each.name, each)
        if other is not each:
            why = (
                f"{other.file.source} has the same name and also has steps: rename one of the files"
            )
            yield from each.refusal(0, why).mistakes


def _plan(files: Sequence[TomlFile], is_known: IsKnown) -> FleetPlan | None:
    """As one plan, so that it is checked and applied as a whole."""
    # A file without any table declares an empty fleet, unless there are steps in it.
    fleets = [file for file in files if file.tables.keys() != {_STEPS}]
    if not fleets:
        return None
    if len(fleets) == 1 and _STEPS not in fleets[0].tables:
        # There may be a million VMs, of which nothing has to be remembered.
        return plan_of(fleets[0], is_known=is_known)
    joined = _Joined(fleets)
    try:
        return parse(joined.tables, is_known=is_known)
    except InvalidFleetError as error:
        placed = [
            joined.placed(Mistake(path=each.path, why=str(each.error))) for each in error.mistakes
        ]
    raise FleetFileError(
        line
        for file in fleets
        if (own := [mistake for of, mistake in placed if of is file])
        for line in file.refusal(own).mistakes
    )


class _Joined:
    """Several fleet files as one: their lists after each other, anything else from one of them."""

    def __init__(self, files: Sequence[TomlFile]) -> None:
        """Raises FleetFileError."""
        self._first = files[0]
        # Any: what TOML is made of.
        self.tables: dict[str, Any] = {}
        self._origins: dict[str, list[tuple[TomlFile, int]]] = {}
        """For each element of a list, its file and its place there; for others, their file."""
        mistakes = [line for file in files for line in self._add(file)]
        if mistakes:
            raise FleetFileError(mistakes)

    def placed(self, mistake: Mistake) -> tuple[TomlFile, Mistake]:
        """The file that a mistake is in, and where it is there."""
        key, *rest = mistake.path or ("",)
        origins = self._origins.get(str(key), [])
        if not origins:
            return self._first, mistake
        if not rest or not isinstance(rest[0], int) or not isinstance(self.tables[str(key)], list):
            return origins[0][0], mistake
        file, number = origins[rest[0]]
        path: KeyPath = (key, number, *rest[1:])
        return file, Mistake(path=path, why=mistake.why)

    def _add(self, file: TomlFile) -> Iterable[str]:
        for key, value in _fleet_of(file).items():
            known = self.tables.get(key)
            if isinstance(value, list) and (known is None or isinstance(known, list)):
                self.tables[key] = [*(known or ()), *value]
                self._origins.setdefault(key, []).extend((file, at) for at in range(len(value)))
            elif key not in self.tables:
                self.tables[key] = value
                self._origins[key] = [(file, 0)]
            elif known != value:
                why = f"{self._origins[key][0][0].source} says {shown(known)}: keep one of them"
                yield from file.refusal([Mistake(path=(key,), why=why)]).mistakes


def _fleet_of(file: TomlFile) -> Mapping[str, Any]:
    return {key: value for key, value in file.tables.items() if key != _STEPS}
