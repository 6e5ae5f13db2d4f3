"""The chain: every row once, in an order that no late commit can upset (I23, I29)."""

import asyncio
import sqlite3

from forewarned.clock import VirtualClock
from forewarned.service.ports import Store
from tests.postgresql.databases import Database
from tests.storage.conftest import OpenSqlite
from tests.storage.history.stored_history import (
    Place,
    PostgresPlace,
    chain,
    filled,
    findings,
    record,
    verified,
)


async def test_rows_are_chained_once_however_often_it_is_asked(store: Store) -> None:
    await store.transact(record("one", "two", "three"))

    await chain(store, rows=3)
    again, _ = await store.transact(lambda tx: tx.chain_history(100))

    assert again == 0


async def test_a_server_that_starts_again_goes_on_where_it_was(place: Place) -> None:
    async with filled(place):
        pass

    async with place.store() as store:
        await store.transact(record("one", "two"))
        await chain(store, rows=2)

    found = verified(place)
    assert (found.findings, found.checked, found.unchained) == ([], 12, 0)


async def test_a_change_writes_nothing_to_the_chain_itself(sqlite: OpenSqlite) -> None:
    """What chaining costs is not paid by those who wait for a change."""
    async with sqlite() as store:
        await store.transact(record("one"))

        path = store._path
        assert path is not None
        with sqlite3.connect(path) as connection:
            [[entries]] = connection.execute("SELECT count(*) FROM history_chain").fetchall()
        connection.close()

    assert entries == 0


async def test_what_is_committed_late_is_chained_too_and_after_what_was_chained_before(
    database: Database, clock: VirtualClock
) -> None:
    """F7: its number is lower than those of rows that are chained already."""
    place = PostgresPlace(database, clock)
    insert = (
        "INSERT INTO history (at, actor, address, action, scope_id, resources, cause)"
        " VALUES (0, '', '', %s, '', '[]', '')"
    )
    async with place.store() as store:
        with database.connect() as slow:
            slow.execute(insert, ("slow",))
            database.ask(insert, "quick")
            held, _ = await store.transact(lambda tx: tx.chain_history(100))
            slow.commit()
        await chain(store, rows=2)
        database.ask(insert, "later")
        await chain(store, rows=1)

    assert held == 0
    order = database.ask(
        "SELECT action FROM history_chain JOIN history ON id = history_id ORDER BY number"
    )
    assert order == [("slow",), ("quick",), ("later",)]
    assert verified(place).checked == 3


async def test_nodes_that_chain_at_once_chain_each_row_once(
    database: Database, clock: VirtualClock
) -> None:
    place = PostgresPlace(database, clock)
    async with place.store() as one, place.store() as other:
        writes = [
            asyncio.create_task(_write(store, f"{name} {number}"))
            for number in range(20)
            for name, store in (("one", one), ("other", other))
        ]
        while not all(task.done() for task in writes):
            await asyncio.gather(_chain(one), _chain(other))
        await asyncio.gather(*writes)
        while verified(place).unchained:
            await _chain(one)

    found = verified(place)
    assert (found.findings, found.checked, found.head.number) == ([], 40, 40)


async def _write(store: Store, cause: str) -> None:
    await store.transact(record(cause))


async def _chain(store: Store) -> None:
    await store.transact(lambda tx: tx.chain_history(3))


async def test_a_restored_dump_goes_on_with_its_chain(
    database: Database, clock: VirtualClock
) -> None:
    """A restore gives rows other transactions, in another order than they were chained in."""
    place = PostgresPlace(database, clock)
    async with filled(place) as store:
        await store.transact(record("not chained before the restore"))

    database.ask("UPDATE history SET changed = pg_current_xact_id()")
    database.ask("UPDATE store SET epoch = epoch + 1")
    async with place.store() as store:
        await store.transact(record("after the restore"))
        await chain(store, rows=2)

    found = verified(place)
    assert (found.findings, found.checked, found.unchained) == ([], 12, 0)


async def test_history_of_an_earlier_version_is_chained_from_its_first_row(place: Place) -> None:
    async with filled(place, 7):
        pass
    place.sql("DELETE FROM history_chain")
    place.sql("DELETE FROM notes")

    async with place.store() as store:
        await chain(store, rows=7)

    assert findings(place) == []
