"""The tables `[actuators.NAME]` and `[[sources]]` of a settings file.

Every mistake is found, with its line.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from forewarned.actuators.kinds import KINDS
from forewarned.actuators.sources.table import SourceTable
from forewarned.actuators.table import ActuatorTable
from forewarned.config.mistakes import MistakesError, any_of, did_you_mean, shown
from forewarned.config.tables import TableReader
from forewarned.config.toml import TomlFile

TABLE: Final = "actuators"
SOURCES: Final = "sources"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_RESERVED: Final = frozenset({"simulated"})
"""The emulator's own."""


class ActuatorSettingsError(MistakesError):
    """All the mistakes in the tables of actuators, one line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    actuators: Mapping[str, ActuatorTable]
    sources: Mapping[str, SourceTable]
    """By the names of their actuators."""

    def local(self) -> "Declared":
        """What is run by the process that has read this."""
        own = {name: table for name, table in self.actuators.items() if not table.is_remote}
        return replace(self, actuators=own)


def load(path: Path) -> Declared:
    """Those of a file that may hold a server's settings, too. Raises ActuatorSettingsError."""
    return read(TomlFile.load(path, error=ActuatorSettingsError), folder=path.parent)


def read(file: TomlFile, *, folder: Path) -> Declared:
    """Raises the file's error. Relative paths are relative to the folder."""
    reader = TableReader(folder)
    found = _declared(file.tables, reader)
    if reader.mistakes:
        raise file.refusal(reader.mistakes)
    return found


# Any: what TOML is made of.
def parsed(tables: Mapping[str, Any], *, folder: Path) -> Declared:
    """Of tables that were read without mistakes before: `actuators` and `sources`."""
    reader = TableReader(folder)
    found = _declared(tables, reader)
    if reader.mistakes:
        raise ActuatorSettingsError(f"{each.path}: {each.why}" for each in reader.mistakes)
    return found


def _declared(tables: Mapping[str, Any], reader: TableReader) -> Declared:
    declared = tables.get(TABLE, {})
    actuators = dict(_tables(declared, reader))
    known = declared if isinstance(declared, Mapping) else {}
    sources = dict(_sources(tables.get(SOURCES, []), known, actuators, reader))
    return Declared(actuators=actuators, sources=sources)


def _sources(
    declared: object,
    known: Mapping[str, object],
    actuators: Mapping[str, ActuatorTable],
    reader: TableReader,
) -> Iterator[tuple[str, SourceTable]]:
    """`known` are all actuators, including those that have mistakes."""
    if not isinstance(declared, list):
        reader.refuse((SOURCES,), "expected tables like [[sources]]")
        return
    seen: set[str] = set()
    for number, raw in enumerate(declared):
        source = reader.table(raw, SourceTable, (SOURCES, number))
        if source is None:
            continue
        path = (SOURCES, number, "actuator")
        table = actuators.get(source.actuator)
        if source.actuator not in known:
            near = did_you_mean(source.actuator, known)
            reader.refuse(path, f"there is no [actuators.{source.actuator}] in this file{near}")
        elif source.actuator in seen:
            reader.refuse(path, f"another [[sources]] table already names {source.actuator}")
        elif table is not None and (why := table.why_unlisted()) is not None:
            reader.refuse(path, why)
        else:
            yield source.actuator, source
        seen.add(source.actuator)


def _tables(declared: object, reader: TableReader) -> Iterator[tuple[str, ActuatorTable]]:
    if not isinstance(declared, Mapping):
        reader.refuse((TABLE,), "expected tables like [actuators.rack1]")
        return
    for name, raw in declared.items():
        path = (TABLE, name)
        if not _NAME.fullmatch(name):
            reader.refuse(
                path,
                "an actuator's name has up to 64 letters, digits and . _ -, and starts with a"
                " letter or digit",
            )
        elif name in _RESERVED:
            reader.refuse(path, f"the name {name} is reserved for the emulator")
        elif not isinstance(raw, Mapping):
            reader.refuse(path, f"expected a table, got {shown(raw)}")
        elif "driver" not in raw:
            reader.refuse(path, f"the field 'driver' is missing: expected {any_of([*KINDS])}")
        elif not isinstance(kind := raw["driver"], str) or kind not in KINDS:
            near = did_you_mean(str(kind), KINDS)
            why = f"expected {any_of([*KINDS])}, got {shown(kind)}{near}"
            reader.refuse((*path, "driver"), why)
        else:
            fields = {key: value for key, value in raw.items() if key != "driver"}
            table = reader.table(fields, KINDS[kind], path)
            if table is not None:
                yield name, table
