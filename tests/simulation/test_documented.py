"""What the page of the simulation says of each law is so."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.simulation import laws
from tests.stateful import documents, laws_of_commits, laws_of_state

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = dict(
    re.findall(r"^\| (I\d+) \| (.+)$", (ROOT / "docs/simulation.md").read_text(), re.MULTILINE)
)
WRITTEN: Final = "".join(
    Path(module.__file__ or "").read_text()
    for module in (laws, documents, laws_of_commits, laws_of_state)
)
SIMULATED: Final = "".join(
    path.read_text()
    for folder in ("tests/simulation", "tests/stateful")
    for path in sorted((ROOT / folder).rglob("*.py"))
)


@pytest.mark.parametrize("law", [f"I{number}" for number in range(1, 31)])
def test_each_law_names_what_checks_it(law: str) -> None:
    named = re.findall(r"`([^`]+)`", ROWS[law])
    checks = [name for name in named if re.match(r"_?i\d", name)]
    files = [name for name in named if name.startswith("tests/")]

    assert checks or files
    for name in checks:
        assert f"def {name}(" in WRITTEN, name
        is_run = len(re.findall(rf"\b{name}\b", SIMULATED)) > 1
        assert is_run, f"{name} is defined, and nothing checks it"
    for name in files:
        assert (ROOT / name).is_file(), name
