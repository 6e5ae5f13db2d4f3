"""The list of deliberate defects can't rot, and the simulation finds one of them here."""

import pytest

from tools.mutants.mutant import Mutant
from tools.mutants.trial import occurrences
from tools.simulation.defects import DEFECTS, hunt


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_the_text_a_defect_replaces_is_once_in_its_file(defect: Mutant) -> None:
    assert occurrences(defect) == 1


def test_there_is_a_defect_for_each_group_of_laws() -> None:
    laws = {defect.breaks.partition(":")[0].partition(",")[0] for defect in DEFECTS}

    assert len(DEFECTS) >= 10
    # Start, document, approval, life cycle, durability and delivery, agent.
    assert laws >= {"I1", "I2", "I6", "I7", "I14", "I17", "I19", "I20", "I22", "I25", "I30"}


def test_the_simulation_finds_notice_that_is_too_short() -> None:
    """I2. `make simulate ARGS=--defects` finds all of them."""
    [short] = [defect for defect in DEFECTS if defect.name == "short"]

    found = hunt(short, seeds=40).found

    assert found is not None
    assert found.startswith("I2:")
