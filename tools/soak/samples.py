"""What is counted each minute: of every process of a node, of the database, and of the clients.

A series has a kind, which says how much it may grow, and a name: `memory/a writer`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks import usage
from tools.soak.cluster import DATABASE, Cluster
from tools.soak.tally import Tally

Sample = dict[str, float]

_PROC: Final = Path("/proc")
_CONNECTIONS: Final = f"""
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = '{DATABASE}' AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_WAL: Final = "SELECT sum(size) FROM pg_ls_waldir()"
_TABLES: Final = """
    SELECT relname, pg_total_relation_size(relid), n_dead_tup, n_tup_del FROM pg_stat_user_tables
"""
_QUEUES: Final = {
    "queue/open events": "SELECT count(*) FROM events WHERE ended_at IS NULL",
    "queue/pending deliveries": "SELECT count(*) FROM deliveries WHERE state = 'pending'",
    "queue/undelivered": "SELECT count(*) FROM deliveries WHERE state = 'undelivered'",
}
PRUNED: Final = ("history", "events", "tasks")
"""Tables that retention takes rows out of, and nothing else does."""


def sample(cluster: Cluster, tally: Tally) -> Sample:
    return {**dict(_processes(cluster, tally)), **dict(_database(cluster))}


def clients(tally: Tally, before: Sample, seconds: float) -> Sample:
    """What clients did since the sample before, which was so many seconds ago."""
    found: Sample = {f"done/{what}": number for what, number in tally.done.items()}
    requests = max(1, tally.done.total() + tally.failed.total())
    found["failed/share of requests"] = tally.failures / requests
    found["refused/share of requests"] = tally.refusals / requests
    found["done/nothing"] = tally.failed.total()
    for what in ("poll", "approve", "schedule"):
        name = f"done/{what}"
        found[f"rate/{what}"] = (found.get(name, 0) - before.get(name, 0)) / seconds
        found[f"p99/{what}"] = tally.p99(what)
    return found


def processors(found: Sample, before: Sample, seconds: float) -> Sample:
    """Of each node, the share of a core since the sample before."""
    return {
        f"processor/{name.partition('/')[2]}": (spent - before[name]) / seconds
        for name, spent in found.items()
        if name.startswith("spent/") and name in before
    }


def _processes(cluster: Cluster, tally: Tally) -> Iterator[tuple[str, float]]:
    for node, product in cluster.nodes.items():
        alive = usage.family(product.pids[0])
        if not set(alive).issuperset(product.pids):
            tally.broke(f"a process of node {node} has ended, and another took its place")
        product.pids[:] = alive
        yield f"spent/{node}", usage.processor_seconds(alive)
        for pid in product.pids:
            name = f"{node} {usage.role(pid)}"
            folder = _PROC / str(pid)
            lines = (folder / "status").read_text().splitlines()
            status = dict(line.split(":", 1) for line in lines)
            yield f"memory/{name}", int(status["VmRSS"].split()[0]) * 1024
            yield f"threads/{name}", int(status["Threads"])
            yield f"descriptors/{name}", len(list((folder / "fd").iterdir()))


def _database(cluster: Cluster) -> Iterator[tuple[str, float]]:
    [[connections]] = cluster.ask(_CONNECTIONS)
    [[wal]] = cluster.ask(_WAL)
    yield "connections/all nodes", connections
    yield "wal/on disk", int(wal)
    for table, size, dead, deleted in cluster.ask(_TABLES):
        yield f"table/{table}", size
        yield f"dead rows/{table}", dead
        if table in PRUNED:
            yield f"removed/{table}", deleted
        # Counted: what PostgreSQL knows of live rows is an estimate.
        [[rows]] = cluster.ask(f"SELECT count(*) FROM {table}")
        yield f"rows/{table}", rows
    for name, query in _QUEUES.items():
        [[number]] = cluster.ask(query)
        yield name, number
