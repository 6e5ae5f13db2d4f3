"""The list of mutants can't rot: each of them still applies, and says what it breaks."""

import re

import pytest

from tools.mutants.catalog import MUTANTS
from tools.mutants.mutant import Mutant
from tools.mutants.trial import ROOT, occurrences


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_a_mutant_replaces_is_once_in_its_file(mutant: Mutant) -> None:
    assert occurrences(mutant) == 1
    assert mutant.new != mutant.old


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_names_the_promise_it_breaks_and_tests_that_exist(mutant: Mutant) -> None:
    # An invariant, a threat, a decision of ours, or a standard that others go by.
    assert re.match(r"[IS]\d+|Decision \d{4}: |Event Grid: |Standard Webhooks: ", mutant.breaks)
    assert all((ROOT / tests.partition("::")[0]).exists() for tests in mutant.tests)


def test_no_two_mutants_have_one_name() -> None:
    names = [mutant.name for mutant in MUTANTS]

    assert sorted(set(names)) == sorted(names)
