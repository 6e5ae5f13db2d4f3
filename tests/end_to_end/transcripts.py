"""Console blocks of a page: commands, and what the page says they print.

A page shows ids and dates of the day it was written. They are compared as "some id" and "some
date", and what a page's id stands for in this run is remembered for the commands that follow.
"""

import re
from dataclasses import dataclass, field
from typing import Final

_BLOCK: Final = re.compile(r"^```console\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_FILE: Final = re.compile(
    r'^```(?:python|json) title="(?P<name>[\w.-]+)"\n(?P<text>.*?)^```',
    flags=re.DOTALL | re.MULTILINE,
)
# A command goes on in the next line where its line ends with a backslash.
_COMMAND: Final = re.compile(r"((?:.*\\\n)*.*)\n?")
_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DATE: Final = re.compile(
    r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[\d.]*(?:Z|\+00:00))?"
)
# As tables show ids.
_SHORT_ID: Final = re.compile(r"\b[0-9A-F]{8}\b")


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    output: str
    """As the page shows it; empty where it shows none."""

    @property
    def is_refused(self) -> bool:
        return "ERROR:" in self.output


@dataclass(frozen=True, slots=True)
class Ids:
    """What the ids on a page are in this run."""

    meaning: dict[str, str] = field(default_factory=dict)

    def learn(self, shown: str, printed: str) -> None:
        self.meaning.update(zip(_GUID.findall(shown), _GUID.findall(printed), strict=True))

    def put_into(self, command: str) -> str:
        return _GUID.sub(lambda found: self.meaning.get(found[0], found[0]), command)


def steps(page: str) -> list[Step]:
    found = []
    for block in _BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command = _COMMAND.match(part)
            assert command is not None
            found.append(Step(command[1], _trimmed(part[command.end() :])))
    return found


def programs(page: str) -> dict[str, str]:
    """The files that a page shows whole, by name."""
    return {found["name"]: found["text"] for found in _FILE.finditer(page)}


def without_chance(text: str) -> str:
    return _SHORT_ID.sub("ID", _DATE.sub("DATE", _GUID.sub("GUID", _trimmed(text))))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
