"""A TOML file as read: its tables, and the line of every mistake that is found in them."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from forewarned.config.key_lines import key_lines
from forewarned.config.mistakes import KeyPath, Mistake, MistakesError, show_path

_LINE: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>[0-9]+), column [0-9]+\)")
_AT_END: Final = " (at end of document)"


@dataclass(frozen=True)
class TomlFile:
    source: str
    """What mistakes call the file."""
    text: str
    tables: dict[str, Any]  # what TOML is made of, before it is checked
    error: type[MistakesError]
    """What its mistakes are raised as."""

    @classmethod
    def load(cls, path: Path, *, error: type[MistakesError], source: str = "") -> "TomlFile":
        source = source or str(path)
        try:
            # Some editors put a byte order mark before the text.
            text = path.read_text(encoding="utf-8-sig")
        except OSError as wrong:
            raise error([f"{source}: {wrong.strerror}"]) from wrong
        except UnicodeDecodeError as wrong:
            raise error([f"{source}: not UTF-8, as TOML must be"]) from wrong
        return cls.parse(text, source=source, error=error)

    @classmethod
    def parse(cls, text: str, *, source: str, error: type[MistakesError]) -> "TomlFile":
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as wrong:
            raise error([_placed(source, str(wrong), text)]) from wrong
        except ValueError as wrong:
            raise error([f"{source}: a number has too many digits"]) from wrong
        except RecursionError as wrong:
            raise error([f"{source}: the nesting is too deep"]) from wrong
        return cls(source, text, tables, error)

    def line_of(self, path: KeyPath) -> int:
        """The line of the path, or of what it would be in: a missing key has no line of its own."""
        for length in range(len(path), 0, -1):
            if (line := self._lines.get(path[:length])) is not None:
                return line
        return 1

    def refusal(self, mistakes: Iterable[Mistake]) -> MistakesError:
        """In the order of the file."""
        placed = sorted(((self.line_of(each.path), each) for each in mistakes), key=itemgetter(0))
        return self.error(
            f"{self.source}:{line}: " + f"{show_path(each.path)}: {each.why}".removeprefix(": ")
            for line, each in placed
        )

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return key_lines(self.text)


def _placed(source: str, message: str, text: str) -> str:
    if found := _LINE.fullmatch(message):
        return f"{source}:{found['line']}: {found['what']}"
    if message.endswith(_AT_END):
        return f"{source}:{text.count(chr(10)) + 1}: {message}"
    return f"{source}: {message}"
