"""Fleet files: a plan from TOML, with the line of every mistake."""

import re
from collections.abc import Iterable
from importlib import resources
from operator import itemgetter
from pathlib import Path
from typing import Final

from forewarned.config.toml import key_lines, line_of, load_toml, show_path
from forewarned.control.fleet.wire import IsKnown, parse
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.fleet.validation import InvalidFleetError

_TOML_LINE: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>[0-9]+), column [0-9]+\)")


class FleetFileError(Exception):
    """All that is wrong with a fleet file, a line each: `fleet.toml:14: scale_sets[0].name: …`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def load_fleet(path: Path, *, is_known: IsKnown = lambda _: False) -> FleetPlan:
    """`is_known` is as for `parse`. Raises FleetFileError."""
    try:
        # Editors on Windows put a mark before the text, which is no part of it.
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FleetFileError([f"{path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise FleetFileError([f"{path}: not in UTF-8, which TOML always is"]) from error
    return parse_fleet(text, source=str(path), is_known=is_known)


def demo_fleet() -> FleetPlan:
    """The fleet of an emulator that was given none: one scope of every kind."""
    text = resources.files(__package__).joinpath("demo.toml").read_text(encoding="utf-8")
    return parse_fleet(text, source="demo.toml")


def parse_fleet(text: str, *, source: str, is_known: IsKnown = lambda _: False) -> FleetPlan:
    """`source` is what errors call the file. Raises FleetFileError."""
    try:
        raw = load_toml(text)
    except ValueError as error:
        placed = _TOML_LINE.fullmatch(str(error))
        where = f"{source}:{placed['line']}: {placed['what']}" if placed else f"{source}: {error}"
        raise FleetFileError([where]) from error
    try:
        return parse(raw, is_known=is_known)
    except InvalidFleetError as error:
        lines = key_lines(text)
        placed_faults = sorted(
            ((line_of(fault.path, lines), fault) for fault in error.faults), key=itemgetter(0)
        )
        raise FleetFileError(
            f"{source}:{line}: {show_path(fault.path)}: {fault.error}"
            for line, fault in placed_faults
        ) from error
