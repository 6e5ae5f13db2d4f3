"""The actuators of the settings file, as the server's processes pass them on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from forewarned.config.mistakes import MistakesError
from forewarned.config.toml import TomlFile
from forewarned.runtime.settings.table import Mode, Settings

if TYPE_CHECKING:
    from forewarned.actuators.settings import Declared
    from forewarned.actuators.table import ActuatorTable

TABLE: Final = "actuators"
SOURCES: Final = "sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredActuators:
    """Without mistakes. Servers that have none import nothing for them."""

    # Any: what TOML is made of.
    declared: Mapping[str, Any] = field(default_factory=dict)
    sources: Sequence[Any] = ()
    folder: Path = Path()
    """What relative paths are relative to: the settings file's own place."""

    def tables(self) -> "Mapping[str, ActuatorTable]":
        return self._parsed().actuators if self.declared else {}

    def _parsed(self) -> "Declared":
        from forewarned.actuators.settings import parsed  # noqa: PLC0415  # see the class

        tables = {TABLE: self.declared, SOURCES: [*self.sources]}
        return parsed(tables, folder=self.folder)

    def hosts(self) -> Mapping[str, tuple[str, ...]]:
        """The patterns of the hosts of each."""
        return {name: table.hosts for name, table in self.tables().items()}

    def local(self) -> "Declared":
        """What this server runs itself."""
        return self._parsed().local()

    def listing(self) -> list[tuple[str, str]]:
        """Name and driver of each, and of each source its actuator, for people."""
        drivers = [(f"{TABLE}.{name}", str(raw["driver"])) for name, raw in self.declared.items()]
        return drivers + [
            (f"{SOURCES}[{number}]", str(raw["actuator"]))
            for number, raw in enumerate(self.sources)
        ]


def read_actuators(
    path: Path | None, settings: Settings, *, error: type[MistakesError]
) -> DeclaredActuators:
    """Raises the error, with every mistake."""
    if path is None:
        return DeclaredActuators()
    file = TomlFile.load(path, source=f"file {path}", error=error)
    if not {TABLE, SOURCES} & file.tables.keys():
        return DeclaredActuators()
    from forewarned.actuators.settings import read  # noqa: PLC0415  # see DeclaredActuators

    read(file, folder=path.parent)
    found = DeclaredActuators(
        declared=file.tables.get(TABLE, {}),
        sources=tuple(file.tables.get(SOURCES, ())),
        folder=path.parent,
    )
    at = f"{file.source}:{file.line_of((TABLE,))}: {TABLE}"
    if settings.mode is not Mode.SERVICE:
        raise error([f"{at}: an emulator simulates all work on VMs: use --mode service"])
    if found.local().actuators and not settings.workers:
        raise error(
            [f"{at}: actuators run as separate processes, which --workers 0 does not allow"]
        )
    return found
