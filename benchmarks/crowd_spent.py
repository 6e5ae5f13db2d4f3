"""Where the processor time of VMs' polls goes, here and in nginx: what P2b does not tell.

python -m benchmarks.crowd_spent [VMS]
"""

import contextlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import crowd, exchange, nginx, product, usage
from benchmarks.crowd import Crowd
from benchmarks.machine import Cores, allow_connections
from benchmarks.programs import MissingProgramError, find

SECONDS: Final = 20.0
FLEET: Final = 100_000
_ROW: Final = re.compile(r"^ +(?P<share>[\d.]+)% +(?P<object>\S+)")
_PARTS: Final = {
    "[": "kernel",
    "python": "interpreter",
    "libpython": "interpreter",
    "nginx": "nginx",
    "libc.": "C library",
    "libc-": "C library",
    "loop.": "event loop (uvloop)",
}
"""By how the name of what was running begins."""


def by_part(pids: Sequence[int], members: Crowd, record: Path) -> dict[str, float]:
    """Microseconds of a poll."""
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-o", str(record)]
    before = usage.processor_seconds(list(pids))
    with subprocess.Popen([*command, "-p", ",".join(map(str, pids))]) as recording:
        try:
            polled = members.poll(SECONDS)
        finally:
            recording.terminate()
    spent = (usage.processor_seconds(list(pids)) - before) / polled["answered"] * 1e6
    report = subprocess.run(
        ["perf", "report", "-i", str(record), "--sort", "dso", "--stdio", "-q"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    parts: Counter[str] = Counter()
    for row in filter(None, map(_ROW.match, report.splitlines())):
        names = (part for start, part in _PARTS.items() if row["object"].startswith(start))
        parts[next(names, "other")] += float(row["share"]) / 100 * spent
    return dict(parts)


def main(count: int) -> None:
    if find("perf") is None:
        raise MissingProgramError("needs perf, which is not installed")
    allow_connections(30_000)
    cores = Cores.of_this_machine()
    cores.load_from_here()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch, contextlib.ExitStack() as stack:
        folder = Path(scratch)
        fleet = product.fleet_of(FLEET, kind="grouped")
        server = stack.enter_context(product.serving(folder, fleet, prefix=cores.serving))
        answer = exchange.ask(server.metadata, exchange.poll())
        limit = stack.enter_context(nginx.serving(folder / "nginx", answer, prefix=cores.serving))
        found = {}
        for name, port, pids in (
            ("Forewarned", server.metadata, server.pids),
            ("nginx", limit.plain, limit.pids),
        ):
            members = stack.enter_context(
                crowd.gathered(
                    folder / f"crowd-{name}",
                    port,
                    product.addresses(count, apart=FLEET // count),
                    prefix=cores.loading,
                )
            )
            members.poll(3)
            found[name] = by_part(pids, members, folder / f"{name}.perf")
    print(f"{'':22}" + "".join(f"{name:>14}" for name in found))
    for part in dict.fromkeys(part for parts in found.values() for part in parts):
        print(f"{part:22}" + "".join(f"{each.get(part, 0):11.1f} µs" for each in found.values()))
    print(f"{'sum':22}" + "".join(f"{sum(each.values()):11.1f} µs" for each in found.values()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
