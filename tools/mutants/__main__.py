"""`python -m tools.mutants`: try every mutant, and fail unless all are caught."""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict

from tools.mutants.catalog import MUTANTS
from tools.mutants.mutant import Mutant
from tools.mutants.trial import (
    Trial,
    UnmutatedTestsFailError,
    Verdict,
    prove_unmutated,
    try_mutant,
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.list:
        for mutant in MUTANTS:
            print(f"{mutant.name:<30} {mutant.breaks}")
        return 0
    chosen = [mutant for mutant in MUTANTS if not options.only or mutant.name in options.only]
    began = time.monotonic()
    try:
        _prove_unmutated(chosen)
    except UnmutatedTestsFailError as failure:
        _say(f"the tests fail without any mutant, so they can judge none:\n{failure}")
        return 1
    trials = _try_all(chosen, parallel=options.parallel)
    if options.json:
        print(json.dumps([asdict(trial) for trial in trials], indent=2))
    else:
        _print_table(trials, time.monotonic() - began)
    return 0 if all(trial.verdict is Verdict.CAUGHT for trial in trials) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description="Apply small wrong edits to copies of the tree; every one must be caught.",
    )
    names = [mutant.name for mutant in MUTANTS]
    parser.add_argument("--list", action="store_true", help="name the mutants and stop")
    parser.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help="try this one; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--parallel", type=int, default=2, metavar="N", help="trials at a time")
    return parser


def _prove_unmutated(chosen: Iterable[Mutant]) -> None:
    named = {test for mutant in chosen for test in mutant.tests}
    # Mutants may name a file both whole and in part: run it once.
    tests = sorted(test for test in named if test.partition("::")[0] not in named - {test})
    _say(f"without any mutant: {' '.join(tests)} ...")
    _say(f"they pass, in {prove_unmutated(tests):.0f} s")


def _try_all(chosen: Sequence[Mutant], *, parallel: int) -> list[Trial]:
    """In the order of the catalog, whichever comes back first."""
    done: dict[str, Trial] = {}
    with ThreadPoolExecutor(parallel) as pool:
        pending = [pool.submit(try_mutant, mutant) for mutant in chosen]
        for future in as_completed(pending):
            trial = future.result()
            done[trial.mutant.name] = trial
            count = f"{len(done)}/{len(chosen)}"
            _say(f"{count:>6}  {trial.verdict:<9} {trial.mutant.name} ({trial.seconds:.0f} s)")
    return [done[mutant.name] for mutant in chosen]


def _print_table(trials: Sequence[Trial], seconds: float) -> None:
    print()
    for trial in trials:
        print(f"{trial.mutant.name:<30} {trial.verdict:<9} {trial.mutant.breaks}")
        print(f"{'':<30} {'':<9} by {trial.by}" if trial.by else "", end="\n" if trial.by else "")
    caught = sum(trial.verdict is Verdict.CAUGHT for trial in trials)
    print(f"\n{caught} of {len(trials)} caught, in {seconds:.0f} s")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
