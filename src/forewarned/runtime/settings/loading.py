"""Where the settings' values come from, and where each one came from.

Defaults give way to the settings file, that to the environment, that to flags.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from forewarned.config.mistakes import MistakesError, shown
from forewarned.config.sources import Given, from_environ, from_file, from_flags
from forewarned.config.values import show
from forewarned.runtime.settings.actuators import (
    SOURCES,
    TABLE,
    DeclaredActuators,
    read_actuators,
)
from forewarned.runtime.settings.conflicts import DEFAULT, conflicts
from forewarned.runtime.settings.subscriptions import TABLE as SUBSCRIPTIONS
from forewarned.runtime.settings.subscriptions import DeclaredSubscriptions, read_subscriptions
from forewarned.runtime.settings.table import BY_NAME, SETTINGS, Mode, Settings

DEFAULT_FILE: Final = Path("forewarned.toml")

CONFIG_VARIABLE: Final = "FOREWARNED_CONFIG"
"""Names the settings file, as the flag --config does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    settings: Settings
    origin: Mapping[str, str]
    """Where each setting's value came from: `default`, `file forewarned.toml:12`, `flag --clock`"""
    file: Path | None
    """The settings file that was read; None where there was none."""
    actuators: DeclaredActuators = DeclaredActuators()  # noqa: RUF009  # frozen
    subscriptions: DeclaredSubscriptions = DeclaredSubscriptions()  # noqa: RUF009  # as above

    def listing(self) -> list[tuple[str, str, str]]:
        """Each setting's name, value and origin, as people read them."""
        settings = [
            (each.name, show(getattr(self.settings, each.name)), self.origin[each.name])
            for each in SETTINGS
        ]
        declared = [*self.actuators.listing(), *self.subscriptions.listing()]
        return settings + [(name, what, f"file {self.file}") for name, what in declared]


class SettingsError(MistakesError):
    """All the mistakes in the settings, one line each."""


def load(
    *, flags: Mapping[str, object], environ: Mapping[str, str], path: Path | None = None
) -> Resolved:
    """Flags are by setting name; None is a flag that was not given. Raises SettingsError."""
    file = _file(environ, path)
    mistakes: list[str] = []
    given: dict[str, Given] = {}
    for source in (
        from_file(
            file, BY_NAME, mistakes, error=SettingsError, besides={TABLE, SOURCES, SUBSCRIPTIONS}
        ),
        from_environ(environ, {name: each.variable for name, each in BY_NAME.items()}),
        from_flags(flags, {name: each.flag for name, each in BY_NAME.items()}),
    ):
        given |= {one.name: one for one in source}
    values: dict[str, object] = {}
    for one in given.values():
        setting = BY_NAME[one.name]
        try:
            value = setting.parse(one.value)
        except ValueError as wrong:
            found = "" if setting.is_secret else f" = {shown(one.value)}"
            mistakes.append(f"{one.origin}: {one.name}{found}: {wrong}")
        else:
            values[one.name] = one.folder / value if isinstance(value, Path) else value
    if mistakes:
        raise SettingsError(mistakes)
    settings = _complete(values)
    origin = {name: given[name].origin if name in given else DEFAULT for name in BY_NAME}
    if contradictions := list(conflicts(settings, origin)):
        raise SettingsError(contradictions)
    actuators = read_actuators(file, settings, error=SettingsError)
    return Resolved(
        settings=settings,
        origin=MappingProxyType(origin),
        file=file,
        actuators=actuators,
        subscriptions=read_subscriptions(file, error=SettingsError),
    )


def load_here(*, flags: Mapping[str, object], path: Path | None = None) -> Resolved:
    """With the environment this program runs in."""
    return load(flags=flags, environ=os.environ, path=path)


def _file(environ: Mapping[str, str], path: Path | None) -> Path | None:
    named = environ.get(CONFIG_VARIABLE)
    if path is None and not named:
        return DEFAULT_FILE if DEFAULT_FILE.is_file() else None
    source = f"environment {CONFIG_VARIABLE}" if path is None else "flag --config"
    found = path or Path(named or "")
    if not found.is_file():
        raise SettingsError([f"{source}: there is no file {str(found)!r}"])
    return found


def _complete(values: Mapping[str, object]) -> Settings:
    mode = Mode(str(values.get("mode", Mode.EMULATOR)))
    # Each comes from its own field's default or parser, so each has its own field's type.
    every: dict[str, Any] = {name: each.default_in(mode) for name, each in BY_NAME.items()}
    return Settings(**(every | dict(values)))
