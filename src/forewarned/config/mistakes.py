"""Mistakes in what people write: where each one is, and the words to report it with."""

import difflib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

KeyPath = tuple[str | int, ...]
"""Keys and, for elements of arrays, their indexes: `("scale_sets", 0, "capacity")`."""

_LONGEST_VALUE: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    path: KeyPath
    why: str


class MistakesError(Exception):
    """All the mistakes in a file, one line each: `agent.toml:14: hooks.drain.timeout: …`."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class ExpectedError(ValueError):
    """A value is not what it should be; reports add the value, unless they show it anyway."""

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(f"expected {what}{hint}")
        self.what = what
        self.hint = hint


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(wrong, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def any_of(names: Collection[str]) -> str:
    """`a, b or c`"""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    # Dates, which TOML has and JSON has not, are shown as they are written.
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def show_path(path: KeyPath) -> str:
    """`scale_sets[0].capacity`"""
    shown_ = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return shown_.removeprefix(".")
