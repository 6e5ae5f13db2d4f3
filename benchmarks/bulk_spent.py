"""Where the processor time of P6's import and of P8 goes, by process and thread.

python -m benchmarks.bulk_spent import [VMS]
python -m benchmarks.bulk_spent due [EVENTS]
"""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks import crowd, exchange, product, usage, volley
from benchmarks.machine import Cores, allow_connections
from benchmarks.usage import Thread

Spent = dict[Thread, tuple[float, float]]


def of_import(folder: Path, cores: Cores, vms: int) -> None:
    began = time.monotonic()
    fleet = product.fleet_of(vms, kind="grouped")
    with product.serving(folder, fleet, "--clock", "paused", prefix=cores.serving) as server:
        took = time.monotonic() - began
        _tell(usage.by_thread(server.pids), {}, vms)
    print(f"{vms} VMs: {took:.1f} s")


def of_events_due(folder: Path, cores: Cores, events: int) -> None:
    """Until all VMs have heard, and after that until the server is quiet."""
    names = [f"many-{number}" for number in range(events)]
    fleet = product.fleet_of(events, kind="alone")
    with product.serving(folder, fleet, "--clock", "paused", prefix=cores.serving) as server:
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        server.schedule(names, notice="15m")
        with crowd.gathered(
            folder / "crowd", server.metadata, product.addresses(events), prefix=cores.loading
        ) as vms:
            now = exchange.ask(server.metadata, exchange.poll_as(names[0]))
            vms.begin_waiting(product.incarnation(now.body))
            vms.hear()
            usage.wait_until_quiet(server.pids)
            before, began = usage.by_thread(server.pids), time.monotonic()
            server.call("POST", "/v1/clock/step", {"by": "15m1s"})
            stepped = time.monotonic() - began
            seen = max(vms.hear()["arrivals"]) - began
            usage.wait_until_quiet(server.pids)
            _tell(usage.by_thread(server.pids), before, events)
    print(f"{events} events: visible after {seen:.2f} s, step answered after {stepped:.2f} s")


def _tell(after: Spent, before: Spent, number: int) -> None:
    for thread, spent in after.items():
        was = before.get(thread, (0.0, 0.0))
        own, system = ((spent[part] - was[part]) * 1e6 / number for part in (0, 1))
        if own + system >= 1:
            print(f"{thread.process:8} {thread.name:8} {own:6.1f} µs, system {system:5.1f} µs")


def main(what: str, number: int | None) -> None:
    allow_connections(30_000)
    cores = Cores.of_this_machine()
    cores.load_from_here()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        if what == "import":
            of_import(Path(scratch), cores, number or 100_000)
        else:
            of_events_due(Path(scratch), cores, number or 10_000)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
