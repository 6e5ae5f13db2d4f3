"""Scenario files: TOML, read strictly. Every mistake is found in one pass, with its line.

What a step or an expectation refers to is looked up in the tables as written, so that a mistake in
one of them hides none in another.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from forewarned.config.mistakes import KeyPath, Mistake, MistakesError, did_you_mean
from forewarned.config.tables import TableReader
from forewarned.config.toml import TomlFile
from forewarned.recordings.file import read_recording
from forewarned.recordings.form import RecordingError
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.steps import AnyStep, Replay

_EVENT_STEPS: Final = frozenset({"schedule", "fail", "maintain", "terminate", "replay"})
_ENDS_HANDLER: Final = frozenset({"stop_handler", "kill_handler", "wait_exited"})

# Any, here and below: a table as it was read from the file, before it is known to be right.
Table = Mapping[str, Any]


class ScenarioFileError(MistakesError):
    """A scenario file has mistakes."""


def load(path: Path) -> Scenario:
    """Raises ScenarioFileError, with every mistake."""
    return read(TomlFile.load(path, error=ScenarioFileError), folder=path.parent)


def parse(text: str, *, source: str = "scenario") -> Scenario:
    """Raises ScenarioFileError, with every mistake."""
    return read(TomlFile.parse(text, source=source, error=ScenarioFileError))


def read(file: TomlFile, *, folder: Path = Path()) -> Scenario:
    """`folder` is where the files are that it names."""
    reader = TableReader()
    scenario = reader.table(file.tables, Scenario, ())
    mistakes = [*reader.mistakes, *_References(file.tables).mistakes()]
    if scenario is not None:
        scenario = replace(scenario, steps=tuple(_placed(each, folder) for each in scenario.steps))
        mistakes += _unreadable(scenario)
    if scenario is None or mistakes:
        raise file.refusal(mistakes)
    return scenario


def _placed(step: AnyStep, folder: Path) -> AnyStep:
    return replace(step, file=str(folder / step.file)) if isinstance(step, Replay) else step


def _unreadable(scenario: Scenario) -> Iterator[Mistake]:
    for index, step in enumerate(scenario.steps):
        if isinstance(step, Replay):
            try:
                read_recording(Path(step.file))
            except (OSError, RecordingError) as error:
                why = getattr(error, "strerror", None) or error
                yield Mistake(path=("step", index, "file"), why=f"{step.file}: {why}")


class _References:
    """What the tables of a file say of each other."""

    def __init__(self, tables: Table) -> None:
        self._vm = tables.get("vm")
        self._fleet = None if "fleet" not in tables else list(_tables(tables, "fleet"))
        self._steps = list(_tables(tables, "step"))
        self._expectations = list(_tables(tables, "expect"))
        self._has_expectations = tables.get("expect") != []
        self._starts_handler = tables.get("start_handler") not in {False, "off", "no", "false"}
        fleet = [({"name": "vm"}, ())] if self._fleet is None else self._fleet
        self._vms = [str(vm["name"]) for vm, _ in fleet if "name" in vm]
        self._names = [str(step["name"]) for step, _ in self._steps if "name" in step]

    def mistakes(self) -> Iterator[Mistake]:
        if self._fleet == []:
            yield Mistake(path=("fleet",), why="the fleet has no VMs")
        if not self._has_expectations:
            yield Mistake(path=("expect",), why="the scenario has no [[expect]]: add at least one")
        yield from _twice("VM", self._fleet or ())
        yield from _twice("step", self._steps)
        yield from self._unknown_vm({"vm": self._vm}, (), "vm")
        yield from self._in_steps()
        yield from self._handler_order()
        events = self._event_names(len(self._steps))
        for expectation, path in self._expectations:
            yield from _unknown(expectation, path, "event", "no step makes an event named", events)
            for key in ("after", "until"):
                yield from _unknown(expectation, path, key, "no step is named", self._names)

    def _in_steps(self) -> Iterator[Mistake]:
        for index, (step, path) in enumerate(self._steps):
            earlier = self._event_names(index)
            yield from _unknown(
                step, path, "event", "no earlier step makes an event named", earlier
            )
            # `by` is a VM where something is approved, and a span where the clock is moved.
            for key in ("vm", "vms", *(("by",) if step.get("do") == "approve" else ())):
                yield from self._unknown_vm(step, path, key)

    def _handler_order(self) -> Iterator[Mistake]:
        runs = self._starts_handler
        for step, path in self._steps:
            what = step.get("do")
            if what == "start_handler" and runs:
                why = (
                    "the handler is already running: stop or kill it first, or set"
                    " start_handler = false"
                )
                yield Mistake(path=path, why=why)
            if what in _ENDS_HANDLER and not runs:
                yield Mistake(path=path, why="the handler is not running: start it first")
            runs = what == "start_handler" or (runs and what not in _ENDS_HANDLER)

    def _event_names(self, before: int) -> list[str]:
        made = [step for step, _ in self._steps[:before] if step.get("do") in _EVENT_STEPS]
        return [str(step["name"]) for step in made if "name" in step]

    def _unknown_vm(self, table: Table, path: KeyPath, key: str) -> Iterator[Mistake]:
        named = table.get(key)
        listed = named if isinstance(named, list) else [named]
        for name in listed:
            if isinstance(name, str) and name.casefold() not in map(str.casefold, self._vms):
                hint = did_you_mean(name, self._vms)
                yield Mistake(path=(*path, key), why=f"no VM is named {name!r}{hint}")


def _tables(tables: Table, key: str) -> Iterator[tuple[Table, KeyPath]]:
    """The tables of an array, each with its path. What is no table is reported elsewhere."""
    listed = tables.get(key)
    for index, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, Mapping):
            yield each, (key, index)


def _twice(what: str, tables: "list[tuple[Table, KeyPath]] | tuple[()]") -> Iterator[Mistake]:
    seen: set[str] = set()
    for table, path in tables:
        name = table.get("name")
        if not isinstance(name, str):
            continue
        if name.casefold() in seen:
            yield Mistake(path=(*path, "name"), why=f"there is another {what} named {name!r}")
        seen.add(name.casefold())


def _unknown(
    table: Table, path: KeyPath, key: str, missing: str, names: list[str]
) -> Iterator[Mistake]:
    name = table.get(key)
    if isinstance(name, str) and name not in names:
        yield Mistake(path=(*path, key), why=f"{missing} {name!r}{did_you_mean(name, names)}")
