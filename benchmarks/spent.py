"""Where the processor time of an approval goes, by process and thread: what P5 does not tell.

python -m benchmarks.spent [APPROVALS [VMS]]

With more VMs than approvals all of them have an event, and the first of them approve theirs.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import exchange, product, usage, volley
from benchmarks.machine import Cores
from benchmarks.product import Product
from benchmarks.usage import Thread


def measure(server: Product, names: list[str], approvals: int) -> dict[Thread, tuple[float, float]]:
    """Microseconds of an approval in each thread: its own, and those in the system."""
    volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
    events = {
        event["resources"][0]: event["event_id"]
        for at in range(0, len(names), 10_000)
        for event in server.schedule(names[at : at + 10_000])
    }
    requests = [exchange.approval(name, events[name]) for name in names[:approvals]]
    warm = len(requests) // 5
    volley.fire(server.metadata, requests[:warm])
    usage.wait_until_quiet(server.pids)
    before = usage.by_thread(server.pids)
    volley.fire(server.metadata, requests[warm:])
    # What the approvals have set going counts as well.
    usage.wait_until_quiet(server.pids)
    each = 1e6 / (len(requests) - warm)
    return {
        thread: ((own - before[thread][0]) * each, (system - before[thread][1]) * each)
        for thread, (own, system) in usage.by_thread(server.pids).items()
        if thread in before
    }


def main(approvals: int = 10_000, vms: int = 0) -> None:
    cores = Cores.of_this_machine()
    cores.load_from_here()
    names = [f"many-{number}" for number in range(max(approvals, vms))]
    fleet = product.fleet_of(len(names), kind="alone")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as scratch,
        product.serving(Path(scratch), fleet, prefix=cores.serving) as server,
    ):
        spent = measure(server, names, approvals)
    for thread, (own, system) in spent.items():
        if own + system >= 1:
            print(f"{thread.process:8} {thread.name:8} {own:6.0f} µs, system {system:4.0f} µs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
