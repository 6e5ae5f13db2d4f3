"""A slice of `make simulate`, and what must be true of any simulation that is to be believed."""

import json
import os
import subprocess
import sys
from dataclasses import replace

from tests.effort import amount
from tests.simulation.simulation import simulate


def test_the_laws_hold_from_these_seeds() -> None:
    """I1 to I30, as the command checks them: what it says replays exactly."""
    seeds = amount(20, 200)
    command = [sys.executable, "-m", "tools.simulation", "--json", "--parallel", "1"]

    run = subprocess.run(
        [*command, "--seeds", str(seeds), "--first", "500000"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stdout, run.stderr
    told = json.loads(run.stdout)
    stories = "\n\n".join(
        "\n".join([*each["story"][-40:], f"seed {each['seed']}: {each['violation']}"])
        for each in told["violations"]
    )
    assert not told["violations"], stories
    assert told["seeds"] == seeds
    assert told["events"] > 5 * seeds
    assert told["vm_days"] > 400 * seeds


def test_a_seed_replays_exactly() -> None:
    first, second = (simulate(7, days=9, kept=None) for _ in range(2))

    assert first.story
    assert replace(first, seconds=0) == replace(second, seconds=0)


def test_another_seed_is_another_story() -> None:
    one, other = (simulate(seed, days=6, kept=None) for seed in (8, 9))

    assert one.story != other.story
