"""The line of a TOML text that each key is on, so that an error can point at it.

`tomllib` keeps no lines. This scans texts that `tomllib` has accepted, so it looks only at as much
of the grammar as it takes to know where keys, tables and elements of arrays begin.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Final

from forewarned.config.mistakes import KeyPath

_SPACE: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
# The longer quotes first, or `"""` would be read as an empty string and the start of another.
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line, from 1, where each key, table and element of an array begins."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        self._lines: dict[KeyPath, int] = {}
        self._lengths: dict[KeyPath, int] = {}
        """How many tables each array of tables has so far."""

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        for char in self._starts():
            if char == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _starts(self) -> Iterator[str]:
        """The first character of each header and each pair, with the scanner standing on it."""
        while True:
            self._skip(_SPACE)
            if self._at >= len(self._text):
                return
            yield self._text[self._at]

    def _header(self) -> KeyPath:
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        line = self._current_line()
        *parents, last = self._key()
        path: KeyPath = ()
        for part in parents:
            self._lines.setdefault((*path, part), line)
            path = self._newest((*path, part))
        path = (*path, last)
        if is_array:
            self._lines.setdefault(path, line)
            self._lengths[path] = self._lengths.get(path, 0) + 1
        path = self._newest(path)
        self._lines.setdefault(path, line)
        self._at += 2 if is_array else 1
        return path

    def _newest(self, path: KeyPath) -> KeyPath:
        """In a header, the name of an array of tables stands for its newest table."""
        length = self._lengths.get(path)
        return path if length is None else (*path, length - 1)

    def _pair(self, table: KeyPath) -> None:
        line = self._current_line()
        path = table
        for part in self._key():
            path = (*path, part)
            self._lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._skip(_BLANK)
            if string := _STRING.match(self._text, self._at):
                parts.append(_unquoted(string[0]))
                self._at = string.end()
            else:
                parts.append(self._skip(_BARE_KEY))
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return parts
            self._at += 1

    def _value(self, path: KeyPath) -> None:
        match self._text[self._at]:
            case "[":
                self._elements(path)
            case "{":
                self._inline_table(path)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_SCALAR)

    def _elements(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        for char in self._starts():
            if char == "]":
                break
            if char == ",":
                self._at += 1
                continue
            self._lines[*path, index] = self._current_line()
            self._value((*path, index))
            index += 1
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        for char in self._starts():
            if char == "}":
                break
            if char == ",":
                self._at += 1
                continue
            self._pair(path)
        self._at += 1

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            # Only a text that tomllib would refuse can bring us here; never loop over it.
            raise ValueError(f"not TOML at line {self._current_line()}")
        self._at = found.end()
        return found[0]

    def _current_line(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line


def _unquoted(string: str) -> str:
    if string[0] == "'":
        return string[1:-1]
    return str(tomllib.loads(f"key = {string}")["key"])
