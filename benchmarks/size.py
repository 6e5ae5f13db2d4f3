"""What a server holds, in memory and on disk, for docs/sizing.md.

    .venv/bin/python -m benchmarks.size [VMS…]

Each VM is a scope of its own, which is the most that one can cost. Then events are scheduled,
approved and completed, to see what each leaves in the store.
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import exchange, usage
from benchmarks.product import PROBE, fleet_of, serving

_EVENTS: Final = 500
_MB: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    vms: int
    memory: int
    """Bytes of all its processes, on an idle server."""
    store: int
    """Bytes of the database."""
    event: float
    """Bytes that a whole event adds to it."""


def measured(vms: int, folder: Path) -> Size:
    fleet = fleet_of(vms, kind="alone")
    with serving(folder, fleet) as product:
        usage.wait_until_quiet(product.pids)
        memory = usage.memory(product.pids)
    store = _store(folder)
    with serving(folder, fleet) as product:
        exchange.ask(product.metadata, exchange.poll())
        for _ in range(_EVENTS):
            [event] = product.schedule([PROBE])
            product.call("POST", f"/v1/events/{event['event_id']}/approve", {})
            product.call("POST", f"/v1/events/{event['event_id']}/complete", {})
    return Size(vms=vms, memory=memory, store=store, event=(_store(folder) - store) / _EVENTS)


def _store(folder: Path) -> int:
    """Of a server that has ended, so that nothing is left beside the database."""
    return sum(path.stat().st_size for path in (folder / "state").glob("forewarned.db*"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vms", nargs="*", type=int, default=[100, 10_000, 100_000])
    print("| VMs | Memory | Store | An event adds |\n|--:|--:|--:|--:|")
    for vms in parser.parse_args().vms:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            found = measured(vms, Path(folder))
        print(
            f"| {vms:,} | {found.memory / _MB:.0f} MB | {found.store / _MB:.1f} MB"
            f" | {found.event / 1000:.1f} kB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
