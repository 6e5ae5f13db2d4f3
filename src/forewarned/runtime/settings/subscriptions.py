"""The subscriptions of the settings file, as the server's processes pass them on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from forewarned.config.mistakes import MistakesError
from forewarned.config.tables import TableReader
from forewarned.config.toml import TomlFile

if TYPE_CHECKING:
    from forewarned.service.subscriptions.subscriptions import Declared

TABLE: Final = "subscriptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSubscriptions:
    """Without mistakes. Commands that need none start faster without what they are made of."""

    # Any: what TOML is made of.
    tables: Sequence[Any] = ()
    folder: Path = Path()
    """What relative paths are relative to: the settings file's own place."""

    def declared(self) -> "tuple[Declared, ...]":
        return _read(list(self.tables), TableReader(self.folder)) if self.tables else ()

    def listing(self) -> list[tuple[str, str]]:
        """The name of each, and where its messages go, for people."""
        return [(f"{TABLE}.{each.name}", each.target.place) for each in self.declared()]


def read_subscriptions(path: Path | None, *, error: type[MistakesError]) -> DeclaredSubscriptions:
    """Raises the error, with every mistake."""
    if path is None:
        return DeclaredSubscriptions()
    file = TomlFile.load(path, source=f"file {path}", error=error)
    if TABLE not in file.tables:
        return DeclaredSubscriptions()
    reader = TableReader(path.parent)
    _read(file.tables[TABLE], reader)
    if reader.mistakes:
        raise file.refusal(reader.mistakes)
    return DeclaredSubscriptions(tables=tuple(file.tables[TABLE]), folder=path.parent)


def _read(tables: object, reader: TableReader) -> "tuple[Declared, ...]":
    # Here: see `DeclaredSubscriptions`.
    from forewarned.runtime.settings.subscription_tables import read_tables  # noqa: PLC0415

    return read_tables(tables, reader)
