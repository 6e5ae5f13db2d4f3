"""`python -m tools.soak`: use three nodes for an hour, and fail if anything has grown."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import allow_connections
from benchmarks.started import StartError
from tests.postgresql import servers
from tools.soak import report
from tools.soak.run import Plan, soak

_CONNECTIONS = 4_096


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    plan = Plan(
        minutes=options.minutes,
        vms=options.vms,
        polls=options.polls,
        speed=options.speed,
        every=options.every,
    )
    try:
        servers.programs()
        allow_connections(_CONNECTIONS)
        found = asyncio.run(soak(plan, lambda sample: _say(report.line(sample))))
    except (servers.NoServerError, StartError) as error:
        _say(f"the nodes could not be started: {error}")
        return 2
    counted = json.dumps(report.as_json(found), indent=2)
    if options.output is not None:
        options.output.write_text(counted + "\n", encoding="utf-8")
    if options.json:
        print(counted)
    else:
        print(report.table(found), *report.summary(found), sep="\n")
    for fault in found.faults:
        _say(fault)
    return 1 if found.faults else 0


def _parser() -> argparse.ArgumentParser:
    usual = Plan()
    parser = argparse.ArgumentParser(
        prog="python -m tools.soak",
        description="Use three nodes on PostgreSQL steadily for a long time, and see whether"
        " memory, descriptors, tables or queues grow.",
    )
    parser.add_argument("--minutes", type=float, default=usual.minutes, help="how long")
    parser.add_argument("--vms", type=int, default=usual.vms, help="VMs of the fleet")
    parser.add_argument("--polls", type=float, default=usual.polls, help="of all VMs, a second")
    parser.add_argument(
        "--speed",
        type=float,
        default=usual.speed,
        help="how many times as many events as such a fleet has",
    )
    parser.add_argument(
        "--every", type=float, default=usual.every, help="seconds from one sample to the next"
    )
    parser.add_argument("--json", action="store_true", help="print all that was counted as JSON")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write that to a file as well")
    return parser


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
