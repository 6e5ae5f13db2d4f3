"""What is soaked: a PostgreSQL server, and three nodes on it with 5,000 VMs in their fleet."""

import contextlib
import os
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from benchmarks import nodes, product
from benchmarks.product import PROBE, Product
from tests.postgresql.servers import SUPERUSER, PostgresServer
from tools.soak.judge import MAX_WAL
from tools.soak.operators import ACTUATOR
from tools.soak.vms import Vm

DATABASE: Final = "soak"
ONE_IN_SET_OF: Final = 5
"""So many VMs are a scope each, and the last of them is in a scale set, with an actuator."""

_SECRET: Final = f"whsec_{b64encode(bytes(32)).decode()}"
_SETTINGS: Final = """
publishing_private_addresses = true

[actuators.{actuator}]
driver = "remote"

[[subscriptions]]
name = "soak"
target = {{ kind = "webhook", url = "http://127.0.0.1:{port}/", secrets = ["{secret}"] }}
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    nodes: Mapping[str, Product]
    database: PostgresServer
    folder: Path
    """Has a folder for each node, with its log."""

    # Any: columns are of the types that the query gives them.
    def ask(self, query: str) -> list[Any]:
        return self.database.ask(query, database=DATABASE)

    def log(self, node: str) -> list[str]:
        """Warnings and what is worse."""
        return (self.folder / node / "log").read_text(errors="replace").splitlines()

    def vms(self) -> list[Vm]:
        """As the fleet has them, spread over the nodes."""
        node, *_ = self.nodes.values()
        scopes = node.call("GET", "/v1/fleet")["scopes"]
        found = [vm for scope in scopes for vm in scope["vms"] if vm["name"] != PROBE]
        return [
            Vm(name=vm["name"], address=vm["address"], node=number % len(self.nodes))
            for number, vm in enumerate(found)
        ]


@contextlib.contextmanager
def running_cluster(*, vms: int, retention: timedelta, webhook: int) -> Iterator[Cluster]:
    """`webhook` is the port to which messages are sent."""
    with (
        tempfile.TemporaryDirectory(prefix="forewarned-soak-") as scratch,
        tempfile.TemporaryDirectory(prefix="forewarned-soak-", ignore_cleanup_errors=True) as home,
        contextlib.ExitStack() as stack,
    ):
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            shutil.chown(home, SUPERUSER, SUPERUSER)
        server = PostgresServer(
            Path(home),
            settings={
                "fsync": "on",
                "full_page_writes": "on",
                "shared_buffers": "128MB",
                "max_wal_size": f"{MAX_WAL // 1024**2}MB",
            },
        )
        stack.enter_context(server)
        server.ask(f"CREATE DATABASE {DATABASE}")
        settings = Path(scratch) / "forewarned.toml"
        settings.write_text(
            _SETTINGS.format(actuator=ACTUATOR, port=webhook, secret=_SECRET), encoding="utf-8"
        )
        seconds = f"{retention.total_seconds():.0f}s"
        flags = (
            *nodes.SERVICE,
            *("--config", str(settings), "--store", server.url(DATABASE)),
            # A VM may ask any node at any time, and I7 holds.
            *("--balancing", "any"),
            *("--history-retention", seconds, "--publishing-undelivered-for", seconds),
        )
        started = {
            name: stack.enter_context(product.serving(Path(scratch) / name, _fleet(vms), *flags))
            for name in nodes.NAMES
        }
        yield Cluster(started, server, Path(scratch))


def _fleet(vms: int) -> str:
    in_set = vms // ONE_IN_SET_OF
    scale_set = f'[[scale_sets]]\nname = "set"\ncapacity = {in_set}\nactuator = "{ACTUATOR}"\n'
    return product.fleet_of(vms - in_set, kind="alone") + scale_set
