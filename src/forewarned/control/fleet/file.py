"""Fleet files: a plan from TOML, with the line of every mistake."""

from importlib import resources
from pathlib import Path

from forewarned.config.mistakes import Mistake, MistakesError
from forewarned.config.toml import TomlFile
from forewarned.control.fleet.wire import IsKnown, parse
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.fleet.validation import InvalidFleetError


class FleetFileError(MistakesError):
    pass


def load_fleet(path: Path) -> FleetPlan:
    """Raises FleetFileError."""
    return plan_of(TomlFile.load(path, error=FleetFileError))


def demo_fleet() -> FleetPlan:
    """The fleet of an emulator that was given none: one scope of every kind."""
    text = resources.files(__package__).joinpath("demo.toml").read_text(encoding="utf-8")
    return parse_fleet(text, source="demo.toml")


def parse_fleet(text: str, *, source: str) -> FleetPlan:
    """`source` is what errors call the file. Raises FleetFileError."""
    return plan_of(TomlFile.parse(text, source=source, error=FleetFileError))


def plan_of(file: TomlFile, *, is_known: IsKnown = lambda _: False) -> FleetPlan:
    """`is_known` is as for `parse`. The file's mistakes are raised as its `error`."""
    try:
        return parse(file.tables, is_known=is_known)
    except InvalidFleetError as error:
        mistakes = [Mistake(path=each.path, why=str(each.error)) for each in error.mistakes]
        raise file.refusal(mistakes) from error
