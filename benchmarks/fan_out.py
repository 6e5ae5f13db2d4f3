"""Where the time goes when many wait for a change: what P3 does not tell.

python -m benchmarks.fan_out [--urgent] [WAITING]
"""

import contextlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import click

from benchmarks import crowd, exchange, machine, product, usage
from benchmarks.crowd import Crowd
from benchmarks.figures import percentile
from benchmarks.machine import Cores
from benchmarks.product import Product

ROUNDS: Final = 10
VM: Final = "many_IN_0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    first: float
    """Seconds from the sending of the control request to the first answer."""
    rest: float
    """Seconds from there until 99 % were answered."""
    own: float
    """Processor seconds of the poller's own code."""
    system: float
    """Processor seconds the system spent for the poller."""


def measure(server: Product, members: Crowd) -> Round:
    now = exchange.ask(server.metadata, exchange.poll_as(VM))
    members.begin_waiting(product.incarnation(now.body))
    members.hear()
    usage.wait_until_quiet(server.pids)
    before = _poller(server)
    sent_at = time.monotonic()
    events = server.schedule([VM])
    arrivals = sorted(arrival - sent_at for arrival in members.hear()["arrivals"])
    own, system = (after - at for after, at in zip(_poller(server), before, strict=True))
    # No VM waits now, so this change wakes none.
    server.call("POST", f"/v1/events/{events[0]['event_id']}/cancel")
    rest = percentile(arrivals, 99) - arrivals[0]
    return Round(first=arrivals[0], rest=rest, own=own, system=system)


def _poller(server: Product) -> tuple[float, float]:
    spent = usage.by_thread(server.pids).items()
    own, system = zip(*(used for thread, used in spent if thread.process == "poller"), strict=True)
    return sum(own), sum(system)


@click.command()
@click.argument("waiting", type=click.IntRange(1), default=10_000)
@click.option("--urgent", is_flag=True, help="Ahead of all other work on this machine, as root.")
def main(waiting: int, *, urgent: bool) -> None:
    """Say where the time goes until all of WAITING are answered."""
    machine.allow_connections(30_000)
    cores = Cores.of_this_machine()
    cores.load_from_here()
    fleet = product.fleet_of(waiting, kind="together")
    with (
        machine.first_in_the_queue() if urgent else contextlib.nullcontext(),
        tempfile.TemporaryDirectory(dir="/var/tmp") as scratch,
        product.serving(Path(scratch) / "server", fleet, prefix=cores.serving) as server,
        crowd.gathered(
            Path(scratch) / "crowd",
            server.metadata,
            product.addresses(waiting),
            prefix=cores.loading,
        ) as members,
    ):
        rounds = [measure(server, members) for _ in range(ROUNDS + 1)][1:]
    print(f"until the first is answered   {median(r.first for r in rounds) * 1e3:6.1f} ms")
    print(f"from there until 99 % are     {median(r.rest for r in rounds) * 1e3:6.1f} ms")
    each = 1e6 / waiting / len(rounds)
    print(f"poller, its own, an answer    {sum(r.own for r in rounds) * each:6.1f} µs")
    print(f"poller, in the system         {sum(r.system for r in rounds) * each:6.1f} µs")


if __name__ == "__main__":
    main()
