"""What `make fuzz` gives the readers for an hour, for five seconds: mutations of their examples.

Nothing leads these mutations to code that was not reached before. They catch what an edit breaks
for inputs that are nearly right. An input that a longer run has found is among the examples.
"""

import os
import random
from collections.abc import Callable
from itertools import islice

import pytest

from tests.effort import amount
from tools.fuzz.catalog import TARGETS, load
from tools.fuzz.mutation import mutations

RUNS = {
    "requests": 22_000,
    "conversation": 6_000,
    "expressions": 70_000,
    "toml": 6_000,
    "frames": 45_000,
}
"""About five seconds of each."""
# As with Hypothesis: the same every time in CI, where a red run must be red for what was changed.
SEED = 61 if os.environ.get("CI") else random.randrange(1_000_000)


def first_defect(
    check: Callable[[bytes], None], examples: tuple[bytes, ...], *, runs: int
) -> tuple[bytes, Exception] | None:
    for data in islice(mutations(examples, seed=SEED), runs):
        try:
            check(data)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a defect
            return data, error
    return None


@pytest.mark.parametrize("name", TARGETS)
def test_an_input_that_is_nearly_right_is_read_or_refused(name: str) -> None:
    target = load(name)
    runs = amount(RUNS[name], 10 * RUNS[name])

    assert first_defect(target.check, tuple(target.EXAMPLES), runs=runs) is None, SEED


def test_a_reader_that_fails_for_few_inputs_is_found_out() -> None:
    def reads_numbers(data: bytes) -> None:
        """Lists of numbers, if no one leaves a comma at their end."""
        if data.endswith(b",]"):
            raise IndexError

    found = first_defect(reads_numbers, (b"[1, 2, 3]", b"[10,20]"), runs=20_000)

    assert found is not None
    assert isinstance(found[1], IndexError)
