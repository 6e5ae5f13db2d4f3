"""A store whose connections lead to another server than they did a moment ago."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from forewarned.config.values import DatabaseUrl
from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.rules import Rules
from forewarned.security.identities import Principal, Role
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.ports import Transaction
from forewarned.storage.postgres.nodes import principals
from forewarned.storage.postgres.nodes.node_store import node_store
from forewarned.storage.postgres.store import PostgresStore
from tests.builders import OPERATOR, a_node_record, a_scope
from tests.postgresql.pgbouncer import PgBouncer, pgbouncer
from tests.postgresql.servers import private_folder
from tests.postgresql.standby import ServerPair, server_pair
from tests.storage.store_calls import keep, load

ALICE = Principal(name="alice", role=Role.ADMIN, token_sha256="a" * 64)


@pytest.fixture
def pair() -> Iterator[ServerPair]:
    with private_folder() as folder, server_pair(folder, is_synchronous=False) as running:
        yield running


@pytest.fixture
def pooler(pair: ServerPair) -> Iterator[PgBouncer]:
    with private_folder() as folder, pgbouncer(pair.primary, folder) as running:
        yield running


def _a_store(pooler: PgBouncer, folder: Path) -> PostgresStore:
    return node_store(
        DatabaseUrl(pooler.url()),
        folder,
        serves=a_node_record().serves,
        next_wake=partial(lifecycle.next_wake, rules=Rules()),
        rules={},
    )


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
    async with _a_store(pooler, tmp_path) as store:
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


async def test_behind_pgbouncer_nothing_is_read_from_a_primary_that_another_has_replaced(
    pair: ServerPair, pooler: PgBouncer, tmp_path: Path
) -> None:
    """I7: a pool may lead back to the old one, which is still there, and has older documents."""
    async with _a_store(pooler, tmp_path) as store:
        await keep(store, a_scope())
        pair.wait_until_caught_up()
        pair.promote()
        pooler.move(pair.primary)
        shown = await _move(store)
        read = [(await load(store)).incarnation for _ in range(4)]

        pooler.move(pair.other)
        with pytest.raises(StoreUnavailableError, match="an old primary"):
            await load(store)

        pooler.move(pair.primary)
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(StoreUnavailableError):
                    again = (await load(store)).incarnation
                    break
                await asyncio.sleep(0.05)

    assert read == [shown] * 4
    assert again == shown


async def test_behind_pgbouncer_a_token_that_was_revoked_stays_so_where_a_pool_leads_back(
    pair: ServerPair, pooler: PgBouncer, tmp_path: Path
) -> None:
    """S12: the old primary still has it."""
    async with _a_store(pooler, tmp_path) as store:
        await keep(store, a_scope())
        with principals.edited(DatabaseUrl(pooler.url())) as known:
            known[:] = [ALICE]
        await store.identities.look()
        before = list(store.identities.current())
        pair.wait_until_caught_up()
        pair.promote()
        pooler.move(pair.primary)
        await _move(store)
        with principals.edited(DatabaseUrl(pooler.url())) as known:
            known.clear()
        await store.identities.look()

        pooler.move(pair.other)
        with pytest.raises(StoreUnavailableError, match="an old primary"):
            await store.identities.look()
        after = list(store.identities.current())

    assert before == [ALICE]
    assert after == []
