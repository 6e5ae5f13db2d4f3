"""Edits that no test can notice, each with the reason: `explained.toml`."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tools.mutants.machine.edits import Edit

FILE: Final = Path(__file__).with_name("explained.toml")
_FIELDS: Final = {"module", "where", "old", "new", "why"}


class Key(NamedTuple):
    """What tells an edit from all others, and survives edits to other lines."""

    module: str
    where: str
    old: str
    new: str


class BadExplanationError(Exception):
    """The file of explanations is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is wrong: nothing, if all three are empty."""

    unexplained: Sequence[Edit]
    """Survived, and the file does not say why."""
    caught: Sequence[Key]
    """Explained, but a test has noticed it."""
    vanished: Sequence[Key]
    """Explained, but there is no such edit."""

    @property
    def is_clean(self) -> bool:
        return not (self.unexplained or self.caught or self.vanished)


def key_of(edit: Edit) -> Key:
    return Key(edit.module, edit.where, edit.old, edit.new)


def read(file: Path = FILE) -> dict[Key, str]:
    """Raises BadExplanationError."""
    found: dict[Key, str] = {}
    try:
        content = tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise BadExplanationError(f"{file.name}: {error}") from error
    tables = content.get("survivor", [])
    if not set(content) <= {"survivor"} or not _are_tables(tables):
        raise BadExplanationError(f"{file.name} has only tables named [[survivor]]")
    for number, table in enumerate(tables, 1):
        if set(table) != _FIELDS or not all(isinstance(value, str) for value in table.values()):
            raise BadExplanationError(
                f"{file.name}, survivor {number}: it needs {', '.join(sorted(_FIELDS))}, as texts"
            )
        key = Key(table["module"], table["where"], table["old"], table["new"])
        if not table["why"].strip():
            raise BadExplanationError(f"{file.name}, survivor {number}: say why no test can tell")
        if key in found:
            raise BadExplanationError(f"{file.name}, survivor {number}: it is there twice")
        found[key] = table["why"]
    return found


def _are_tables(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(each, dict) for each in found)


def judge(
    edits: Iterable[Edit],
    *,
    caught: Iterable[Edit],
    survived: Iterable[Edit],
    explained: Mapping[Key, str],
) -> Judgement:
    """`edits` are all there are where `explained` belongs to, tried or not."""
    known = {key_of(edit) for edit in edits}
    left = {key_of(edit): edit for edit in survived}
    noticed = {key_of(edit) for edit in caught} - set(left)
    return Judgement(
        unexplained=[edit for key, edit in left.items() if key not in explained],
        caught=[key for key in explained if key in noticed],
        vanished=[key for key in explained if key not in known],
    )
