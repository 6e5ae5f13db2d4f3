"""Rows that wait to be written together: nobody can tell that they have waited."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from forewarned.core import lifecycle
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import EventStatus
from forewarned.core.rules import Rules
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Snapshot, Store, Transaction
from forewarned.storage import SqliteStore
from forewarned.storage.relational.statements import MOVE_SCOPE
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.rows import Row
from forewarned.storage.sqlite import group_commit
from forewarned.storage.sqlite.database import SqliteDatabase
from tests.builders import OPERATOR, A, B, a_scope, an_event
from tests.storage.conftest import OpenSqlite
from tests.storage.sqlite.connections import connection_of
from tests.storage.sqlite.test_group_commit import MindChangedError, fail_after, held_up, together
from tests.storage.store_calls import cache, everything, keep

SCOPE1, SCOPE2 = ScopeId("scope1"), ScopeId("scope2")
Function = Callable[[Transaction], object]


async def keep_two(store: Store) -> None:
    """An event in each of two scopes."""
    of_vm2 = an_event(B, resources=["vm2"])
    await keep(store, a_scope(an_event(A)), a_scope(of_vm2, id="scope2"))


def approve(scope_id: ScopeId, event_id: EventId) -> Function:
    """Which starts it."""

    def decision(tx: Transaction) -> None:
        change = lifecycle.approve(
            tx.load(scope_id), [event_id], by=OPERATOR, rules=Rules(), now=tx.now
        )
        tx.save(change, by=OPERATOR)

    return decision


def complete(scope_id: ScopeId, event_id: EventId) -> Function:
    def decision(tx: Transaction) -> None:
        tx.save(lifecycle.complete(tx.load(scope_id), event_id, now=tx.now), by=OPERATOR)

    return decision


def one_after_another(*functions: Function) -> Function:
    def decision(tx: Transaction) -> None:
        for each in functions:
            each(tx)

    return decision


def statuses(snapshot: Snapshot) -> dict[EventId, EventStatus]:
    return {found.event.id: found.event.status for found in snapshot.events(EventFilter())}


def actions(snapshot: Snapshot) -> list[str]:
    """The oldest first."""
    return [row.action for row in snapshot.history(HistoryFilter())][::-1]


async def in_one_group(store: SqliteStore, *functions: Function) -> list[object]:
    """What came of each."""
    with pytest.MonkeyPatch.context() as patch:
        # On a busy machine one function may take as long as a group may.
        patch.setattr(group_commit, "LONGEST", 60.0)
        async with held_up(store):
            answers = asyncio.ensure_future(together(store, *functions))
            await asyncio.sleep(0)
        return [answer[0] if isinstance(answer, tuple) else answer for answer in await answers]


# --- asking --------------------------------------------------------------------------------------


async def test_a_work_finds_what_it_has_written_itself(store: Store) -> None:
    """I10"""
    await keep_two(store)

    def decision(tx: Transaction) -> tuple[dict[EventId, EventStatus], list[str]]:
        approve(SCOPE1, A)(tx)
        return statuses(tx), actions(tx)

    (found, happened), _ = await store.transact(decision)

    assert found == {A: EventStatus.STARTED, B: EventStatus.SCHEDULED}
    assert happened == ["approved", "started"]


async def test_a_work_finds_what_those_before_it_in_its_group_have_written(
    sqlite: OpenSqlite,
) -> None:
    """I10, I25"""
    async with sqlite() as store:
        await keep_two(store)

        *_, found = await in_one_group(store, approve(SCOPE1, A), approve(SCOPE2, B), statuses)

    assert found == {A: EventStatus.STARTED, B: EventStatus.STARTED}


# --- order ---------------------------------------------------------------------------------------


async def test_of_two_saves_of_a_scope_the_last_stays_whatever_other_scopes_do(
    store: Store,
) -> None:
    """I14, I19: the statement that ends events comes before the one that starts them."""
    await keep_two(store)
    await store.transact(approve(SCOPE2, B))

    await store.transact(
        one_after_another(complete(SCOPE2, B), approve(SCOPE1, A), complete(SCOPE1, A))
    )

    assert await store.read(statuses) == dict.fromkeys((A, B), EventStatus.COMPLETED)
    assert [saved.scope.events for saved in await cache(store)] == [{}, {}]


async def test_of_two_works_of_a_group_on_one_scope_the_last_stays(sqlite: OpenSqlite) -> None:
    """I14, I19"""
    async with sqlite() as store:
        await keep_two(store)
        await store.transact(approve(SCOPE2, B))

        await in_one_group(store, complete(SCOPE2, B), approve(SCOPE1, A), complete(SCOPE1, A))

        assert await store.read(statuses) == dict.fromkeys((A, B), EventStatus.COMPLETED)
        assert (await store.read(actions))[2:] == ["completed", "approved", "started", "completed"]


# --- failing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("asks", [False, True])
async def test_rows_of_a_work_that_failed_are_not_written_with_its_group(
    sqlite: OpenSqlite, *, asks: bool
) -> None:
    """I10, I29: whether or not they had been written by then."""
    failing = one_after_another(approve(SCOPE2, B), statuses) if asks else approve(SCOPE2, B)
    async with sqlite() as store:
        await keep_two(store)

        answers = await in_one_group(store, approve(SCOPE1, A), fail_after(failing))

        assert isinstance(answers[1], MindChangedError)
        assert await store.read(statuses) == {A: EventStatus.STARTED, B: EventStatus.SCHEDULED}
        assert await store.read(actions) == ["approved", "started"]


async def test_rows_that_cannot_be_written_are_the_failure_of_all_who_share_the_commit(
    sqlite: OpenSqlite, path: Path
) -> None:
    """I14, F9: also where it is another function that asks, and so has them written."""
    async with sqlite() as store:
        await keep_two(store)
        before = await store.read(everything)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(
            """CREATE TRIGGER full BEFORE INSERT ON history
               BEGIN SELECT RAISE(ABORT, 'no room'); END"""
        )
    async with sqlite() as store:
        answers = await in_one_group(store, approve(SCOPE1, A), statuses)

        assert [type(answer) for answer in answers] == [StoreUnavailableError] * 2
        assert await store.read(everything) == before


def test_rows_that_were_lost_once_are_not_taken_for_written() -> None:
    """I14: a function might ignore that a query fails."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        buffer = WriteBuffer(SqliteDatabase(connection))
        buffer.begin()
        buffer.save(SCOPE1, [(MOVE_SCOPE, (1, 1, 1, None, None, SCOPE1))])
        buffer.keep()
        buffer.begin()
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            buffer.ask("SELECT 1")

        with pytest.raises(StoreUnavailableError, match="could not be written"):
            buffer.flush()


def test_two_saves_of_a_scope_are_never_rows_of_one_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """I14, I19: PostgreSQL changes a row once in a statement, and does not say by which of two."""
    written: list[Sequence[Row]] = []
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        database = SqliteDatabase(connection)
        monkeypatch.setattr(database, "write_rows", lambda _, rows: written.append(list(rows)))
        first, then = (1, 1, 1, None, None, SCOPE1), (2, 2, 1, None, None, SCOPE1)
        buffer = WriteBuffer(database)
        for functions in ([first, then], [first], [then]):
            buffer.begin()
            for row in functions:
                buffer.save(SCOPE1, [(MOVE_SCOPE, row)])
            buffer.keep()
        buffer.flush()

    assert written == [[first], [then], [first], [then]]


# --- what it is for ------------------------------------------------------------------------------


async def test_a_group_of_works_writes_each_kind_of_row_in_one_go(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep_two(store)

        asked = await statements_of_two_approvals(store)

    assert updated(asked) == ["events", "events", "scopes", "scopes"]
    assert not any("SAVEPOINT" in statement for statement in asked)


async def test_so_does_a_group_whose_scopes_are_loaded_meanwhile(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        await keep_two(store)
    async with sqlite() as store:  # which has none of them in memory
        asked = await statements_of_two_approvals(store)

    assert sum("FROM scopes WHERE id" in statement for statement in asked) == 2
    assert updated(asked) == ["events", "events", "scopes", "scopes"]


async def statements_of_two_approvals(store: SqliteStore) -> list[str]:
    """In different scopes, and in one group."""
    asked: list[str] = []
    await in_one_group(
        store,
        lambda tx: connection_of(tx).set_trace_callback(asked.append),
        approve(SCOPE1, A),
        approve(SCOPE2, B),
    )
    return asked


def updated(statements: list[str]) -> list[str]:
    """The tables."""
    return [each.split()[1] for each in statements if each.lstrip().startswith("UPDATE")]
