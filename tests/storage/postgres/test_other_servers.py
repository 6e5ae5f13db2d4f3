"""A store whose connections lead to another server than they did a moment ago."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from forewarned.config.values import DatabaseUrl
from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.rules import Rules
from forewarned.service.ports import Transaction
from forewarned.storage.postgres.nodes.node_store import node_store
from forewarned.storage.postgres.store import PostgresStore
from tests.builders import OPERATOR, a_node_record, a_scope
from tests.postgresql.pgbouncer import PgBouncer, pgbouncer
from tests.postgresql.servers import private_folder
from tests.postgresql.standby import ServerPair, server_pair
from tests.storage.store_calls import keep


@pytest.fixture
def pair() -> Iterator[ServerPair]:
    with private_folder() as folder, server_pair(folder, is_synchronous=False) as running:
        yield running


@pytest.fixture
def pooler(pair: ServerPair) -> Iterator[PgBouncer]:
    with private_folder() as folder, pgbouncer(pair.primary, folder) as running:
        yield running


async def _move(store: PostgresStore) -> int:
    """Change what a scope shows. Returns the incarnation that VMs are told."""

    def function(tx: Transaction) -> None:
        scope = tx.load(a_scope().id)
        moved = replace(scope, incarnation=scope.incarnation + 1)
        tx.save(Change(scope=moved), by=OPERATOR)

    _, commit = await store.transact(function, touching=[a_scope().id])
    [page] = commit.shown
    return page.document.incarnation


async def test_behind_pgbouncer_nothing_is_written_to_a_new_primary_before_it_was_checked(
    pair: ServerPair, pooler: PgBouncer, tmp_path: Path
) -> None:
    """I7: the new one lacks commits, and clients of PgBouncer notice no failover."""
    store = node_store(
        DatabaseUrl(pooler.url()),
        tmp_path,
        serves=a_node_record().serves,
        next_wake=partial(lifecycle.next_wake, rules=Rules()),
        rules={},
    )
    async with store:
        await keep(store, a_scope())
        await _move(store)
        pair.stop_streaming()
        before = [await _move(store) for _ in range(5)]

        pair.promote()
        pooler.move(pair.primary)
        after = [await _move(store) for _ in range(3)]

    shown = before + after
    assert shown == sorted(set(shown))
    assert pair.primary.ask("SELECT epoch FROM store") == [(2,)]
