"""Where the values of settings come from: a file, the environment, and flags."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from forewarned.config.mistakes import MistakesError, did_you_mean, shown
from forewarned.config.toml import TomlFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value that an operator gave to a setting."""

    name: str
    value: object
    origin: str
    folder: Path = Path()
    """What relative paths are relative to: in a file, the file's own place."""


def from_file(
    file: Path | None,
    known: Collection[str],
    mistakes: list[str],
    *,
    error: type[MistakesError],
    besides: Collection[str] = (),
) -> Iterator[Given]:
    """Adds a mistake for each key that is no setting. Raises the error if it can't be read.

    `besides` are keys that are read elsewhere.
    """
    if file is None:
        return
    content = TomlFile.load(file, source=f"file {file}", error=error)
    for name, value in content.tables.items():
        origin = f"{content.source}:{content.line_of((name,))}"
        if name in known:
            yield Given(name=name, value=value, origin=origin, folder=file.parent)
        elif name not in besides:
            hint = did_you_mean(name, known) or "; `forewarned settings` lists them"
            mistakes.append(f"{origin}: {name} = {shown(value)}: there is no such setting{hint}")


def from_environ(environ: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[Given]:
    """`variables` has the variable of each setting."""
    for name, variable in variables.items():
        # An empty variable is how many tools pass on one that is not set.
        if value := environ.get(variable):
            yield Given(name=name, value=value, origin=f"environment {variable}")


def from_flags(given: Mapping[str, object], flags: Mapping[str, str]) -> Iterator[Given]:
    """`flags` has the flag of each setting. A value of None is a flag that was not given."""
    for name, value in given.items():
        if value is not None:
            yield Given(name=name, value=value, origin=f"flag {flags[name]}")
