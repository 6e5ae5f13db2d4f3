"""A fleet of 100,000 VMs and a long history: what people look for is found without being felt."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from time import process_time

from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import ScopeKind
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot
from forewarned.storage.rows import micros
from tests.builders import NOON
from tests.storage.conftest import OpenSqlite

VMS = 100_000
PER_SCOPE = 50
ROWS = 20_000
FELT = 0.5
"""Seconds of the processor, ten times what it takes: a loaded machine is slower."""

QUESTIONS: dict[str, Callable[[Snapshot], object]] = {
    "VMs that begin so": lambda s: s.vms_like("vm-04", limit=10),
    "VMs that have it anywhere": lambda s: s.vms_like("99999", limit=10),
    "VMs that there are none of": lambda s: s.vms_like("zzz", limit=10),
    "scopes": lambda s: s.scopes_like("set-1999", kinds=frozenset(ScopeKind), limit=10),
    "hosts": lambda s: s.hosts_like("99", limit=10),
    "a page of all scopes": lambda s: s.scope_listing("", offset=1_000, limit=50),
    "a page of some scopes": lambda s: s.scope_listing("vm-0999", offset=0, limit=50),
    "a page of hosts": lambda s: s.host_summaries([HostName(f"host-{n:04}") for n in range(50)]),
    "the history of a VM": lambda s: s.history(HistoryFilter(resource=ResourceName("vm-000017"))),
    "the history of a minute": lambda s: s.history(
        HistoryFilter(since=NOON + timedelta(hours=1), until=NOON + timedelta(hours=1, minutes=1))
    ),
}


def _scope(vm: int) -> str:
    return f"vmss/set-{vm // PER_SCOPE}/0"


def _fill(path: Path) -> None:
    names = [f"vm-{number:06}" for number in range(VMS)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.executemany(
            "INSERT INTO scopes (id, folded, kind, revision, incarnation, active, policy)"
            " VALUES (?, ?, 'placement_group', 1, 1, 1, '{}')",
            ((_scope(n), _scope(n)) for n in range(0, VMS, PER_SCOPE)),
        )
        connection.executemany(
            "INSERT INTO resources (folded, name, scope_id, position, update_domain, fault_domain,"
            " host, state, priority, eviction_policy)"
            " VALUES (?, ?, ?, 0, 0, 0, ?, 'running', 'Regular', 'Delete')",
            ((name, name, _scope(n), f"host-{n % 5000:04}") for n, name in enumerate(names)),
        )
        connection.executemany(
            "INSERT INTO history (at, actor, address, action, scope_id, resources, cause)"
            " VALUES (?, 'test', '', 'resource_added', ?, ?, '')",
            (
                (micros(NOON) + n * 1_000_000, _scope(n), json.dumps([name]))
                for n, name in enumerate(names[:ROWS])
            ),
        )


async def test_what_is_looked_for_in_a_large_fleet_is_found_at_once(
    sqlite: OpenSqlite, path: Path
) -> None:
    async with sqlite():
        pass
    _fill(path)

    took: dict[str, float] = {}
    async with sqlite() as store:
        for words, question in QUESTIONS.items():
            began = process_time()
            assert await store.read(question) is not None
            took[words] = process_time() - began

    assert {words: spent for words, spent in took.items() if spent > FELT} == {}
