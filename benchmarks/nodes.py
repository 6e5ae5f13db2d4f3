"""Nodes that share a PostgreSQL with a synchronous standby: what the C rows measure.

Every commit reaches the disks of both database servers (`fsync` is on) before it is answered.
"""

import contextlib
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import product, usage
from benchmarks.bench import Bench
from benchmarks.exchange import BrokenExchangeError
from benchmarks.product import Product
from benchmarks.programs import MissingProgramError
from tests.postgresql import servers
from tests.postgresql.pgbouncer import PgBouncer, pgbouncer
from tests.postgresql.servers import SUPERUSER
from tests.postgresql.standby import ServerPair, server_pair

NAMES: Final = ("a", "b", "c")
SERVERS: Final = ("primary", "standby")
"""Of the database."""
AT_ONCE: Final = 20
"""Events in a scheduling request."""
MOST_REFUSALS: Final = 100
SERVICE: Final = ("--mode", "service", "--arm", "off", "--control-access", "open")
"""Real time, and work on VMs that an operator does: SQLite is measured in the same mode."""


@dataclass(frozen=True, slots=True)
class Databases:
    """The two servers, on which each measurement has databases of its own."""

    pair: ServerPair
    bench: Bench

    @contextlib.contextmanager
    def serving(
        self,
        database: str,
        fleet: str,
        *flags: str,
        names: Sequence[str] = NAMES,
        prefix: Sequence[str] = (),
        is_pooled: bool = False,
    ) -> Iterator[list[Product]]:
        """Nodes on this database, which is made if it is new. The first one imports the fleet.

        They reach it through PgBouncer if it `is_pooled`.
        """
        self.make(database)
        with contextlib.ExitStack() as stack:
            reached: ServerPair | PgBouncer = self.pair
            if is_pooled:
                # Each node has 6 connections to its database at most.
                pool = pgbouncer(self.pair.primary, self.pair.primary.folder, sessions=20)
                reached = stack.enter_context(pool)
            store = ("--store", reached.url(database))
            nodes = [
                stack.enter_context(
                    product.serving(
                        self.bench.scratch / f"{database}-{name}",
                        fleet,
                        *SERVICE,
                        *store,
                        *flags,
                        *self.bench.flags,
                        prefix=prefix,
                    )
                )
                for name in names
            ]
            yield nodes

    def make(self, database: str) -> None:
        query = "SELECT 1 FROM pg_database WHERE datname = %s"
        if not self.pair.primary.ask(query, database):
            self.pair.primary.ask(f"CREATE DATABASE {database}")

    def processor_seconds(self) -> dict[str, float]:
        """Of each server, with all its sessions, as far as these are open."""
        servers = (self.pair.primary, self.pair.other)
        return {
            name: usage.processor_seconds(usage.family(server.pid))
            for name, server in zip(SERVERS, servers, strict=True)
        }

    def copy(self, database: str, to: str) -> None:
        """All of its tables and rows, though nodes are connected to it."""
        file = self.pair.primary.folder / f"{to}.sql"
        server = self.pair.primary
        server.run("pg_dump", f"--dbname={server.url(database)}", f"--file={file}")
        self.make(to)
        server.run("psql", "--quiet", f"--dbname={server.url(to)}", f"--file={file}")
        file.unlink()
        server.run("vacuumdb", "--analyze", "--quiet", f"--dbname={server.url(to)}")


def processor_seconds(serving: Sequence[Product]) -> dict[str, float]:
    """Of each part of a node, all nodes together."""
    totals: defaultdict[str, float] = defaultdict(float)
    for node in serving:
        for thread, (own, system) in usage.by_thread(node.pids).items():
            part = "event loop" if thread.number == 0 else "connections"
            totals[f"{thread.process}, {part}"] += own + system
    return dict(totals)


# Any: events are JSON.
def schedule(
    node: Product, vms: Sequence[str], *, type: str = "Reboot", notice: Callable[[], str]
) -> Iterator[Any]:
    """An event for each VM. `notice` is asked when a request is made.

    A decision has to be committed within half a second, or is not made at all, so there are many
    small requests, and smaller ones where the machine is slow.
    """
    left = [vms[at : at + AT_ONCE] for at in range(0, len(vms), AT_ONCE)]
    tries = 0
    while left:
        some = left.pop()
        try:
            yield from node.schedule(some, type=type, notice=notice())
        except BrokenExchangeError as error:
            tries += 1
            if ": 503 " not in str(error) or tries > MOST_REFUSALS:
                raise
            half = -(-len(some) // 2)
            left += [part for part in (some[:half], some[half:]) if part]


@contextlib.contextmanager
def databases(bench: Bench) -> Iterator[Databases]:
    """Both servers, nodes and load share all cores: three nodes are too many for one."""
    try:
        servers.programs()
    except servers.NoServerError as error:
        raise MissingProgramError(str(error)) from error
    with (
        _all_cores(),
        # Beside the scratch folder, which is closed to PostgreSQL's user, and on the same disk.
        tempfile.TemporaryDirectory(
            prefix="forewarned-bench-", dir=bench.scratch.parent, ignore_cleanup_errors=True
        ) as folder,
    ):
        if os.geteuid() == 0:
            shutil.chown(folder, SUPERUSER, SUPERUSER)
        settings = {"fsync": "on", "shared_buffers": "128MB", "max_wal_size": "4GB"}
        with server_pair(Path(folder), settings=settings) as pair:
            yield Databases(pair, bench)


@contextlib.contextmanager
def _all_cores() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
