"""The tables `[actuators.NAME]` of a settings file. Every mistake is found, with its line."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from forewarned.actuators.kinds import KINDS
from forewarned.actuators.table import ActuatorTable
from forewarned.config.mistakes import MistakesError, any_of, did_you_mean, shown
from forewarned.config.tables import TableReader
from forewarned.config.toml import TomlFile

TABLE: Final = "actuators"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_RESERVED: Final = frozenset({"simulated"})
"""The emulator's own."""


class ActuatorSettingsError(MistakesError):
    """All the mistakes in the tables of actuators, one line each."""


def load(path: Path) -> Mapping[str, ActuatorTable]:
    """Those of a file that may hold a server's settings, too. Raises ActuatorSettingsError."""
    return read(TomlFile.load(path, error=ActuatorSettingsError), folder=path.parent)


def read(file: TomlFile, *, folder: Path) -> Mapping[str, ActuatorTable]:
    """Raises the file's error. Relative paths are relative to the folder."""
    reader = TableReader(folder)
    tables = dict(_tables(file.tables.get(TABLE, {}), reader))
    if reader.mistakes:
        raise file.refusal(reader.mistakes)
    return tables


# Any: what TOML is made of.
def parsed(declared: Mapping[str, Any], *, folder: Path) -> Mapping[str, ActuatorTable]:
    """Tables that were read without mistakes before."""
    reader = TableReader(folder)
    tables = dict(_tables(declared, reader))
    if reader.mistakes:
        raise ActuatorSettingsError(f"{each.path}: {each.why}" for each in reader.mistakes)
    return tables


def _tables(declared: object, reader: TableReader) -> Iterator[tuple[str, ActuatorTable]]:
    if not isinstance(declared, Mapping):
        reader.refuse((TABLE,), "expected tables like [actuators.rack1]")
        return
    for name, raw in declared.items():
        path = (TABLE, name)
        if not _NAME.fullmatch(name):
            reader.refuse(path, "an actuator's name has up to 64 letters, digits and . _ -")
        elif name in _RESERVED:
            reader.refuse(path, f"the name {name} is the emulator's own")
        elif not isinstance(raw, Mapping):
            reader.refuse(path, f"expected a table, got {shown(raw)}")
        elif "driver" not in raw:
            reader.refuse(path, f"the field driver is missing: expected {any_of([*KINDS])}")
        elif not isinstance(kind := raw["driver"], str) or kind not in KINDS:
            near = did_you_mean(str(kind), KINDS)
            why = f"expected {any_of([*KINDS])}, got {shown(kind)}{near}"
            reader.refuse((*path, "driver"), why)
        else:
            fields = {key: value for key, value in raw.items() if key != "driver"}
            table = reader.table(fields, KINDS[kind], path)
            if table is not None:
                yield name, table
