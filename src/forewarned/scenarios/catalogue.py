"""The scenarios of the standard examination."""

from importlib import resources

from forewarned.scenarios.file import parse
from forewarned.scenarios.model import Grade, Scenario

_FOLDER = "forewarned.scenarios.standard"


def standard() -> tuple[Scenario, ...]:
    """By grade, and by name within one."""
    order = list(Grade)
    files = [each for each in resources.files(_FOLDER).iterdir() if each.name.endswith(".toml")]
    found = [parse(each.read_text(encoding="utf-8"), source=each.name) for each in files]
    return tuple(sorted(found, key=lambda each: (order.index(each.grade), each.name)))
