"""`python -m tools.crash_points`: try every crash point, and fail unless all is recovered."""

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tools.arguments import at_least_one
from tools.crash_points.campaign import Campaign, Result, UnharmedRunFailsError
from tools.crash_points.catalog import PRELOADED, SUBJECTS
from tools.crash_points.tracing import Kind, NoTracingError, Tracer


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # What a restart says of a disk that failed is not news here.
    logging.getLogger().addHandler(logging.NullHandler())
    chosen = [make for name, make in SUBJECTS.items() if name in (options.subject or SUBJECTS)]
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            campaign = Campaign(Tracer(PRELOADED), Path(folder))
            results = [
                campaign.run(
                    make(),
                    options.kind or tuple(Kind),
                    every=options.every,
                    first=options.first,
                    progress=_progress,
                )
                for make in chosen
            ]
    except (NoTracingError, UnharmedRunFailsError, FileNotFoundError) as error:
        _say(f"no crash points can be tried: {error}")
        return 2
    if options.json:
        print(json.dumps([_as_json(result) for result in results], indent=2))
    else:
        print(table(results))
        print(f"\n{sum(len(r.trials) for r in results)} runs, {time.monotonic() - began:.0f} s")
    for result in results:
        for trial in result.bad:
            _say(f"{result.name}: {trial.kind} at {trial.point}: {trial}")
    return 1 if any(result.bad for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.crash_points",
        description="Kill a part of the product at each call that writes or syncs, or make that"
        " call fail; restart it, and look for what is lost or done twice.",
    )
    parser.add_argument(
        "--subject", action="append", choices=SUBJECTS, help="only this one; repeatable"
    )
    parser.add_argument(
        "--kind",
        action="append",
        type=Kind,
        choices=list(Kind),
        help="only this failure; repeatable",
    )
    parser.add_argument(
        "--every",
        type=at_least_one,
        default=1,
        metavar="N",
        help="try one point of N, for a sample",
    )
    parser.add_argument(
        "--first", type=int, default=0, metavar="K", help="the first of the sample, from 0"
    )
    parser.add_argument("--json", action="store_true", help="print all that was counted as JSON")
    return parser


COLUMNS = {
    "Calls": "calls",
    "Left out": "left_out",
    "Kills": "kill",
    "Disk full": "ENOSPC",
    "I/O errors": "EIO",
    "I/O errors, then a kill": "EIO+kill",
    "Recovered": "recovered",
    "Lost": "lost",
    "Doubled": "doubled",
    "Otherwise wrong": "wrong",
    "Refused": "refused",
    "No effect": "unnoticed",
    "Unclear": "unclear",
}
"""Of the table in docs/crash-points.md."""


def table(results: Sequence[Result]) -> str:
    rows = [["Subject", *COLUMNS], ["---"] + ["---:"] * len(COLUMNS)]
    for result in results:
        counts = result.counts()
        rows.append([result.title, *(f"{counts[name]:,}" for name in COLUMNS.values())])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _as_json(result: Result) -> dict[str, object]:
    bad = [asdict(trial) for trial in result.bad]
    return {"subject": result.name, **result.counts(), "bad": bad}


def _progress(result: Result, of: int) -> None:
    if len(result.trials) % 25 == 0 or len(result.trials) == of:
        bad = f", {len(result.bad)} bad" if result.bad else ""
        _say(f"{result.name}: {len(result.trials)}/{of}{bad}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
