"""`python -m tools.simulation`: simulate from many seeds, and fail if a law was broken."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from tests.simulation.simulation import DAYS, Outcome, simulate
from tools.simulation.defects import DEFECTS, hunts
from tools.simulation.seeds import simulate_all

SEEDS: Final = 2000
_SHOWN: Final = 40
"""Lines of the story of a failing seed."""
_BETWEEN_LINES: Final = 20.0
"""Seconds between two lines that say how far it has come."""
_HASHES: Final = "PYTHONHASHSEED"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if os.environ.get(_HASHES) != "0":
        return _again_with_fixed_hashes(sys.argv[1:] if arguments is None else arguments)
    if options.seed is not None:
        outcome = simulate(options.seed, days=options.days, kept=None)
        _show(outcome, lines=None if options.story else _SHOWN)
        return 0 if outcome.violation is None else 1
    if options.defects is not None:
        return _hunt(options.defects, parallel=options.parallel)
    began = time.monotonic()
    seeds = range(options.first, options.first + options.seeds)
    found: list[Outcome] = []
    told_at = began
    for outcome in simulate_all(seeds, days=options.days, parallel=options.parallel):
        found.append(outcome)
        if outcome.violation and options.stop:
            break
        told_at = _tell_progress(found, options.seeds, since=told_at)
    broken = sorted((each for each in found if each.violation), key=lambda each: each.seed)
    if options.json:
        print(json.dumps(_summary(found, time.monotonic() - began), indent=2))
    else:
        for outcome in broken[:3]:
            _show(outcome, lines=_SHOWN)
        _print_summary(found, time.monotonic() - began)
    return 1 if broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.simulation",
        description="Run the whole service from seeds, in virtual time, and check every law.",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="replay this seed alone")
    parser.add_argument("--story", action="store_true", help="with --seed, all that happened")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="how many")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="the first of them")
    parser.add_argument("--days", type=float, default=DAYS, help="virtual days of each")
    parser.add_argument("--stop", action="store_true", help="at the first violation")
    parser.add_argument(
        "--defects",
        nargs="*",
        choices=[defect.name for defect in DEFECTS],
        metavar="NAME",
        help="break the service deliberately, and see that it is found: these, or all",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--parallel", type=int, default=os.cpu_count() or 1, metavar="N", help="processes"
    )
    return parser


def _again_with_fixed_hashes(arguments: Sequence[str]) -> int:
    """Sets of strings are gone through in an order that Python draws anew for each process."""
    command = [sys.executable, "-m", "tools.simulation", *arguments]
    sys.stdout.flush()
    os.execve(sys.executable, command, {**os.environ, _HASHES: "0"})  # noqa: S606  # ourselves


def _hunt(names: list[str], *, parallel: int) -> int:
    """Fails unless each defect is found by a law that it breaks."""
    missed = 0
    for hunt in hunts(names, parallel=parallel):
        missed += not hunt.is_found
        said = (hunt.found or "no law was broken")[:90]
        said = said if hunt.is_found else f"NOT FOUND: {said}"
        print(f"{hunt.defect.name:<10} {hunt.seeds:>4} seeds  {said}", flush=True)
    return 1 if missed else 0


def _tell_progress(found: Sequence[Outcome], seeds: int, *, since: float) -> float:
    """A line now and then, and for each violation. Returns when it told last."""
    now, last = time.monotonic(), found[-1]
    if last.violation:
        print(f"seed {last.seed}: {_law(last)}", file=sys.stderr, flush=True)
    if now - since < _BETWEEN_LINES:
        return since
    broken = sum(each.violation is not None for each in found)
    print(f"{len(found)} of {seeds} seeds, {broken} violations", file=sys.stderr, flush=True)
    return now


def _law(outcome: Outcome) -> str:
    return (outcome.violation or "all laws held").strip().splitlines()[-1]


def _summary(found: Sequence[Outcome], seconds: float) -> dict[str, object]:
    return {
        "seeds": len(found),
        "vm_days": round(sum(each.vm_days for each in found)),
        "commits": sum(each.commits for each in found),
        "events": sum(each.events for each in found),
        "polls": sum(each.polls for each in found),
        "processor_seconds": round(sum(each.seconds for each in found), 1),
        "seconds": round(seconds, 1),
        "violations": [asdict(each) for each in found if each.violation],
    }


def _print_summary(found: Sequence[Outcome], seconds: float) -> None:
    told = _summary(found, seconds)
    broken = [each.seed for each in found if each.violation]
    print(
        f"{told['seeds']} seeds, {told['vm_days']} VM-days, {told['events']} events,"
        f" {told['commits']} commits, {told['polls']} polls: {len(broken)} violations"
        f" ({told['seconds']} s, {told['processor_seconds']} s of processor time)"
    )
    if broken:
        print(f"broken by seeds {' '.join(map(str, sorted(broken)[:20]))}")


def _show(outcome: Outcome, *, lines: int | None) -> None:
    story = outcome.story if lines is None else outcome.story[-lines:]
    print(*story, sep="\n")
    print(f"seed {outcome.seed}: {outcome.violation or 'all laws held'}")
    print(f"replay it: make simulate ARGS='--seed {outcome.seed}'\n")


if __name__ == "__main__":
    sys.exit(main())
