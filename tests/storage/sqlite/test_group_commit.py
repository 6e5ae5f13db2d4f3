"""Works that come together: committed together in a file, and in no store any different for it."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from forewarned.core.change import Change, with_event
from forewarned.core.ids import ScopeId
from forewarned.core.transitions import Scheduled
from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot, Store, Transaction
from forewarned.service.records import Commit, Declaration, OperationRecord, Saved
from forewarned.storage import SqliteStore
from forewarned.storage.connection_threads import unchanged
from forewarned.storage.sqlite.group_commit import MOST
from forewarned.storage.sqlite.store import connect_writer
from tests.builders import DAY, MINUTE, NOON, OPERATOR, A, a_scope, an_event, event_id
from tests.storage.conftest import OpenSqlite
from tests.storage.sqlite.connections import connection_of
from tests.storage.sqlite.test_store import crowd, files_no_larger_than
from tests.storage.store_calls import cache, everything, keep, settle_in

T = TypeVar("T")
SCOPE1 = ScopeId("scope1")
TOO_LONG = 30
"""Seconds after which a thread that waits in vain lets the test fail."""


class MindChangedError(Exception):
    pass


def schedule(number: int) -> Callable[[Transaction], int]:
    """One more event in scope1, at that many minutes past noon."""

    def decision(tx: Transaction) -> int:
        event = an_event(event_id(number), not_before=NOON + number * MINUTE)
        fact = Scheduled(scope_id=SCOPE1, at=tx.now, event=event)
        change = Change(scope=with_event(tx.load(SCOPE1), event), transitions=(fact,))
        tx.save(change, by=OPERATOR)
        return number

    return decision


def fail_after(function: Callable[[Transaction], object]) -> Callable[[Transaction], None]:
    def fails(tx: Transaction) -> None:
        function(tx)
        raise MindChangedError

    return fails


async def together(
    store: Store, *functions: Callable[[Transaction], T]
) -> list[tuple[T, Commit] | BaseException]:
    return await asyncio.gather(*map(store.transact, functions), return_exceptions=True)


@contextlib.asynccontextmanager
async def held_up(store: SqliteStore) -> AsyncIterator[None]:
    """What is handed in meanwhile waits, and is then taken as one group."""
    begun, go_on = threading.Event(), threading.Event()

    def hold_up(_: Transaction) -> None:
        begun.set()
        assert go_on.wait(TOO_LONG)

    holding = asyncio.create_task(store.transact(hold_up))
    await asyncio.to_thread(begun.wait, TOO_LONG)
    try:
        yield
        # Let every task hand in its function.
        await asyncio.sleep(0)
    finally:
        go_on.set()
        with contextlib.suppress(StoreUnavailableError):
            await holding


# --- in any store --------------------------------------------------------------------------------


async def test_works_that_come_together_each_build_on_the_one_before(sole_store: Store) -> None:
    """I25"""
    await keep(sole_store, a_scope())

    answers = await together(sole_store, *map(schedule, range(1, 6)))

    results = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert [number for number, _ in results] == [1, 2, 3, 4, 5]
    told = [saved for _, commit in results for saved in commit.scopes]
    assert [saved.revision for saved in told] == [2, 3, 4, 5, 6]
    assert [len(saved.scope.events) for saved in told] == [1, 2, 3, 4, 5]
    assert await cache(sole_store) == [told[-1]]


async def test_a_work_that_fails_among_others_is_undone_alone(sole_store: Store) -> None:
    """I10, I14, I29"""
    await keep(sole_store, a_scope())

    answers = await together(
        sole_store, schedule(1), fail_after(schedule(2)), schedule(3), fail_after(schedule(4))
    )

    assert [isinstance(answer, MindChangedError) for answer in answers] == [
        False,
        True,
        False,
        True,
    ]
    [saved] = await cache(sole_store)
    assert list(saved.scope.events) == [event_id(1), event_id(3)]
    assert saved.revision == 3
    rows = await sole_store.read(lambda s: s.history(HistoryFilter()))
    assert [(row.id, row.event_id) for row in rows] == [(2, event_id(3)), (1, event_id(1))]


async def test_what_a_work_that_failed_had_created_can_be_created(sole_store: Store) -> None:
    scope = a_scope(an_event(A))

    answers = await together(
        sole_store,
        fail_after(lambda tx: settle_in(tx, scope)),
        lambda tx: settle_in(tx, scope),
        fail_after(lambda tx: settle_in(tx, scope)),
    )

    assert isinstance(answers[0], MindChangedError)
    assert isinstance(answers[2], ValueError), "it exists by then"
    assert [saved.scope for saved in await cache(sole_store)] == [scope]


async def test_whoever_listens_hears_of_commits_in_order_and_before_callers_are_answered(
    sole_store: Store,
) -> None:
    """I25"""
    await keep(sole_store, a_scope())
    heard: list[Saved] = []
    seen_when_answered: list[int] = []

    async def call(number: int) -> None:
        await sole_store.transact(schedule(number), tell=lambda commit: heard.extend(commit.scopes))
        seen_when_answered.append(len(heard))

    await asyncio.gather(*map(call, range(1, 6)))

    assert [len(saved.scope.events) for saved in heard] == [1, 2, 3, 4, 5]
    assert all(seen >= number for number, seen in enumerate(seen_when_answered, start=1))


async def test_nobody_hears_of_a_work_that_failed(store: Store) -> None:
    await keep(store, a_scope())
    heard: list[Commit] = []

    with pytest.raises(MindChangedError):
        await store.transact(fail_after(schedule(1)), tell=heard.append)

    assert heard == []


async def test_a_listener_that_fails_is_the_callers_error_and_changes_nothing_else(
    store: Store,
) -> None:
    await keep(store, a_scope())

    def deaf(_: Commit) -> None:
        raise MindChangedError

    answers = await asyncio.gather(
        store.transact(schedule(1), tell=deaf),
        store.transact(schedule(2)),
        return_exceptions=True,
    )

    assert [isinstance(answer, MindChangedError) for answer in answers] == [True, False]
    [saved] = await cache(store)
    assert set(saved.scope.events) == {event_id(1), event_id(2)}


async def test_the_last_to_be_told_knows_the_earliest_wake(sole_store: Store) -> None:
    """I20"""
    await keep(sole_store, a_scope())

    answers = await together(sole_store, schedule(9), schedule(3), schedule(5))

    [*_, last] = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert last[1].next_wake == NOON + 3 * MINUTE


# --- in a file -----------------------------------------------------------------------------------


async def test_works_that_wait_share_a_commit(sqlite: OpenSqlite) -> None:
    asked: list[str] = []
    async with sqlite() as store:
        await keep(store, a_scope())
        await store._writer.run(
            lambda tx: connection_of(tx).set_trace_callback(asked.append), unchanged
        )
        async with held_up(store):
            answers = asyncio.ensure_future(together(store, *map(schedule, range(1, 51))))
            await asyncio.sleep(0)
        await answers

    assert 1 <= asked.count("COMMIT") < 50


async def test_what_a_work_that_failed_had_declared_is_unknown_to_its_group(
    sqlite: OpenSqlite,
) -> None:
    """I10, I29"""
    old = OperationRecord(id="old", path="/a", action="start", started_at=NOON - 8 * DAY)
    kept_ = Declaration(path="/A", document="kept", created_at=NOON)

    def touch(tx: Transaction) -> None:
        tx.declare(replace(kept_, document="changed"))
        tx.declare(replace(kept_, path="/b"))
        tx.open_operation(replace(old, id="new", started_at=NOON))
        tx.record("turned_away", by=OPERATOR, cause="")

    def look(snapshot: Snapshot) -> tuple[object, ...]:
        operations = [snapshot.operation("old"), snapshot.operation("new")]
        return list(snapshot.declarations("")), operations, snapshot.history(HistoryFilter())

    async with sqlite() as store:
        await store.transact(lambda tx: tx.declare(kept_))
        await store.transact(lambda tx: tx.open_operation(old))
        async with held_up(store):
            answers = asyncio.ensure_future(together(store, fail_after(touch), look))
            await asyncio.sleep(0)
        failed, looked = await answers

        assert isinstance(failed, MindChangedError)
        assert isinstance(looked, tuple)
        assert looked[0] == ([kept_], [old, None], [])
        assert await store.read(look) == looked[0]


async def test_more_works_than_a_group_takes_are_all_carried_out(sqlite: OpenSqlite) -> None:
    def count(tx: Transaction) -> None:
        tx.put_note("count", str(int(tx.note("count") or 0) + 1))

    async with sqlite() as store:
        await together(store, *[count] * (2 * MOST + 1))

        assert await store.read(lambda s: s.note("count")) == str(2 * MOST + 1)


async def test_a_commit_that_fails_is_the_failure_of_all_who_share_it(
    sqlite: OpenSqlite, path: Path
) -> None:
    """I14, F9"""
    heard: list[Commit] = []
    async with sqlite() as store:
        await keep(store, a_scope())
        before = await store.read(everything)
        with files_no_larger_than(path.with_name(f"{path.name}-wal").stat().st_size):
            async with held_up(store):
                functions = [schedule(1), crowd, fail_after(schedule(2)), schedule(3)]
                answers = asyncio.gather(
                    *(store.transact(each, tell=heard.append) for each in functions),
                    return_exceptions=True,
                )
                await asyncio.sleep(0)
            failed = await answers

        assert [type(answer) for answer in failed] == [StoreUnavailableError] * 4
        assert len({id(answer) for answer in failed}) == 4, "each caller gets an error of its own"
        assert heard == []
        assert await store.read(everything) == before
        await store.transact(schedule(4))
        [saved] = await cache(store)
        assert list(saved.scope.events) == [event_id(4)]
        assert saved.revision == 2


async def test_a_commit_that_the_disk_does_not_confirm_is_neither_made_nor_undone_for_sure(
    sqlite: OpenSqlite, path: Path
) -> None:
    """I14, I23, F9: it is in the log, whole, and a restart may find it there."""
    disk = Disk()
    store = sqlite()
    store._writer._connect = lambda: OnDisk(connect_writer(path), disk)  # type: ignore[assignment, return-value]  # all that it lacks, the connection has
    async with store:
        await keep(store, a_scope())
        disk.is_broken = True
        async with held_up(store):
            answers = asyncio.ensure_future(together(store, schedule(1), schedule(2)))
            await asyncio.sleep(0)
        failed = await answers

    assert [type(answer) for answer in failed] == [UnknownOutcomeError] * 2
    assert "it is not known whether the change was made" in str(failed[0])


@dataclass
class Disk:
    """Once it is broken it syncs no more."""

    is_broken: bool = False


class OnDisk:
    """A connection to a database on such a disk."""

    def __init__(self, connection: sqlite3.Connection, disk: Disk) -> None:
        self._connection = connection
        self._disk = disk

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:  # what sqlite3 takes
        if self._disk.is_broken and sql == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        return self._connection.execute(sql, *values)

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)


async def test_on_a_full_disk_what_is_acknowledged_is_what_is_kept(sqlite: OpenSqlite) -> None:
    """I14, I23, F9"""

    def create(number: int) -> Callable[[Transaction], str]:
        def decision(tx: Transaction) -> str:
            scope = a_scope(id=f"scope{number}", resources=[])
            settle_in(tx, replace(scope, id=ScopeId(f"{number}" * 400)))
            return f"{number}" * 400

        return decision

    async with sqlite() as store:
        await store._writer.run(
            lambda tx: [
                connection_of(tx).execute("PRAGMA max_page_count = 60"),
            ],
            unchanged,
        )
        answers = await together(store, *map(create, range(300)))
    acknowledged = [answer[0] for answer in answers if not isinstance(answer, BaseException)]

    async with sqlite() as store:
        assert [saved.scope.id for saved in await cache(store)] == acknowledged
    assert 0 < len(acknowledged) < 300


async def test_everybody_hears_of_what_is_committed_when_its_caller_has_given_up(
    sqlite: OpenSqlite,
) -> None:
    """I25"""
    heard: list[Commit] = []
    async with sqlite() as store:
        await keep(store, a_scope())
        async with held_up(store):
            caller = asyncio.create_task(store.transact(schedule(1), tell=heard.append))
            await asyncio.sleep(0)
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
        await store.transact(schedule(2), tell=heard.append)

    assert [len(saved.scope.events) for commit in heard for saved in commit.scopes] == [1, 2]
