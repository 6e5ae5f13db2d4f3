"""What the manual says about actuators."""

from pathlib import Path

import msgspec
import pytest

from forewarned.actuators import settings
from forewarned.actuators.kinds import KINDS
from forewarned.actuators.slots import Limits
from forewarned.actuators.sources.table import SourceTable
from forewarned.actuators.table import ActionTable, ActuatorTable
from tools.actuator_reference import action_of, page
from tools.agent_reference import described

DOCS = Path(__file__).resolve().parents[2] / "docs"
MANUAL = (DOCS / "actuators.md").read_text(encoding="utf-8")
STRUCTS: list[type[msgspec.Struct]] = [
    ActuatorTable,
    ActionTable,
    Limits,
    SourceTable,
    *KINDS.values(),
    *(action for kind in KINDS.values() if (action := action_of(kind)) is not None),
]


def test_the_reference_is_what_the_structs_say() -> None:
    assert page(MANUAL) == MANUAL, "run .venv/bin/python -m tools.actuator_reference"


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_field_has_words_of_its_own(struct: type[msgspec.Struct]) -> None:
    words = described(struct)

    assert {name for name, text in words.items() if not text.endswith(".")} == set()
    assert struct.__doc__
    assert all(f"| `{name}` |" in MANUAL for name in words)


@pytest.mark.parametrize("page", ["actuators.md", "private-cloud.md"])
def test_the_examples_of_the_manual_have_no_mistakes(tmp_path: Path, page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = [part.partition("```")[0] for part in text.split("```toml\n")[1:]]
    path = tmp_path / "forewarned.toml"

    for example in examples:
        path.write_text(example)
        assert settings.load(path).actuators
