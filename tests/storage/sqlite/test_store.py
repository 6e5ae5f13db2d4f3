"""What a store in a file promises beyond the contract: it lasts, whatever happens to it."""

import asyncio
import contextlib
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.ids import ScopeId
from forewarned.core.model import Scope
from forewarned.core.rules import Rules
from forewarned.core.transitions import Activated
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Saved
from forewarned.storage import SqliteStore
from forewarned.storage.connection_threads import unchanged
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.sqlite.reads import SqliteSnapshot
from forewarned.storage.sqlite.writes import SqliteTransaction
from tests.builders import HOUR, NOON, A, a_binding, a_scope, an_event
from tests.storage.committer import CALLERS
from tests.storage.conftest import OpenSqlite
from tests.storage.questions import ask_for_a_few_rows
from tests.storage.sqlite.connections import connection_of
from tests.storage.store_calls import cache, everything, keep, load, save, settle_in
from tests.storage.strategies import scopes

ROOT = Path(__file__).parents[3]
SCOPE1 = ScopeId("scope1")
TOO_LONG = 30
"""Seconds after which a thread that waits in vain lets the test fail."""


# --- lasting -------------------------------------------------------------------------------------


async def test_a_reopened_store_holds_what_was_committed(sqlite: OpenSqlite) -> None:
    """I23"""
    async with sqlite() as store:
        await keep(store, a_scope(an_event(A)))
        await save(store, a_scope(an_event(A)), Activated(scope_id=SCOPE1, at=NOON))
        await store.transact(lambda tx: tx.bind(a_binding()))
        await store.transact(lambda tx: tx.put_note("fleet", "one"))
        before = await store.read(everything)

    async with sqlite() as store:
        assert await store.read(everything) == before


@given(scopes)
@settings(max_examples=60)
def test_any_scope_comes_back_equal_and_in_order(scope: Scope) -> None:
    with tempfile.TemporaryDirectory() as folder:
        saved = asyncio.run(reopened(Path(folder) / "forewarned.db", scope))

    assert saved.scope == scope
    assert list(saved.scope.resources) == list(scope.resources)
    assert list(saved.scope.events) == list(scope.events)


async def reopened(path: Path, scope: Scope) -> Saved:
    clock = VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=Rules())
    async with SqliteStore(path, clock, next_wake=next_wake) as store:
        await keep(store, scope)
    async with SqliteStore(path, clock, next_wake=next_wake) as store:
        [saved] = await cache(store)
        assert await load(store, scope.id) == saved.scope
        return saved


@pytest.mark.parametrize("commits", [1, 40, 400])
async def test_a_killed_process_loses_nothing_it_has_told_of(
    path: Path, sqlite: OpenSqlite, commits: int
) -> None:
    """I23, F8"""
    told = await killed_after(commits, path)

    async with sqlite() as store:
        found = [event for saved in await cache(store) for event in saved.scope.events]
        history = await store.read(lambda s: s.history(HistoryFilter(limit=1_000_000)))
    assert set(told) <= set(found)
    assert len(found) <= len(told) + CALLERS
    assert sorted(str(row.event_id) for row in history) == sorted(found)


async def killed_after(commits: int, path: Path) -> list[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.storage.committer",
        path,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    lines = [await process.stdout.readline() for _ in range(commits)]
    os.kill(process.pid, signal.SIGKILL)
    lines += (await process.stdout.read()).splitlines()
    assert await process.wait() == -signal.SIGKILL
    return [line.decode().strip() for line in lines]


async def test_a_commit_waits_for_the_disk(sqlite: OpenSqlite) -> None:
    """I14"""
    async with sqlite() as store:
        pragmas = await store._writer.run(
            lambda tx: [
                connection_of(tx).execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ],
            unchanged,
        )

    assert pragmas == ["wal", 2, 1]  # 2 is FULL


# --- when the disk fails -------------------------------------------------------------------------


async def test_a_full_disk_is_said_and_changes_nothing(sqlite: OpenSqlite) -> None:
    """I14, F9"""
    async with sqlite() as store:
        await keep(store, a_scope())
        await store._writer.run(
            lambda tx: connection_of(tx).execute(
                f"PRAGMA max_page_count = {connection_of(tx).execute('PRAGMA page_count').fetchone()[0]}"
            ),
            unchanged,
        )

        with pytest.raises(StoreUnavailableError, match="full") as refused:
            await store.transact(crowd)

        assert isinstance(refused.value.__cause__, sqlite3.Error)
        assert [saved.scope for saved in await cache(store)] == [a_scope()]


async def test_a_commit_that_fails_changes_nothing_and_the_next_may_succeed(
    sqlite: OpenSqlite, path: Path
) -> None:
    """I14, F9"""
    log = path.with_name(f"{path.name}-wal")
    finished = threading.Event()

    def decision(tx: Transaction) -> None:
        crowd(tx)
        finished.set()

    async with sqlite() as store:
        await keep(store, a_scope())

        with files_no_larger_than(log.stat().st_size), pytest.raises(StoreUnavailableError):
            await store.transact(decision)
        after_failure = await cache(store)
        await store.transact(crowd)

    assert finished.is_set(), "it is the COMMIT that is to fail"
    assert [saved.scope for saved in after_failure] == [a_scope()]
    async with sqlite() as store:
        assert len(await cache(store)) == 101


def crowd(tx: Transaction) -> None:
    for number in range(100):
        scope = a_scope(id=f"crowd{number}", resources=[])
        settle_in(tx, scope)


@contextlib.contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_database_that_somebody_else_has_locked_is_unavailable_until_it_is_free(
    sqlite: OpenSqlite, path: Path
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope())
        await store._writer.run(
            lambda tx: connection_of(tx).execute("PRAGMA busy_timeout = 0"), unchanged
        )
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

            with pytest.raises(StoreUnavailableError, match="locked"):
                await save(store, a_scope(incarnation=2))
            still = await load(store)
            other.execute("ROLLBACK")

        await save(store, a_scope(incarnation=2))
        assert (still.incarnation, (await load(store)).incarnation) == (1, 2)


async def test_a_work_that_failed_leaves_no_lock_behind(sqlite: OpenSqlite, path: Path) -> None:
    def fails(tx: Transaction) -> None:
        settle_in(tx, a_scope())
        raise KeyError

    async with sqlite() as store:
        with pytest.raises(KeyError):
            await store.transact(fails)

        with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")


async def test_a_closed_store_is_unavailable(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        pass

    with pytest.raises(StoreUnavailableError, match="closed"):
        await load(store)
    with pytest.raises(StoreUnavailableError, match="closed"):
        await keep(store, a_scope())


# --- threads -------------------------------------------------------------------------------------


async def test_a_work_goes_on_to_its_end_when_its_caller_gives_up(sqlite: OpenSqlite) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        begun.set()
        assert go_on.wait(TOO_LONG)
        settle_in(tx, a_scope())

    async with sqlite() as store:
        caller = asyncio.create_task(store.transact(slow))
        await asyncio.to_thread(begun.wait, TOO_LONG)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        go_on.set()
        await keep(store, a_scope(id="scope2", resources=[]))

        assert [saved.scope.id for saved in await cache(store)] == ["scope1", "scope2"]


async def test_a_snapshot_does_not_see_what_is_committed_meanwhile(sqlite: OpenSqlite) -> None:
    """I10"""
    begun, go_on = threading.Event(), threading.Event()

    def slow(snapshot: Snapshot) -> tuple[int, int]:
        before = snapshot.load(SCOPE1).incarnation
        begun.set()
        assert go_on.wait(TOO_LONG)
        return before, snapshot.load(SCOPE1).incarnation

    async with sqlite() as store:
        await keep(store, a_scope())
        reading = asyncio.create_task(store.read(slow))
        await asyncio.to_thread(begun.wait, TOO_LONG)
        await save(store, a_scope(incarnation=2))
        go_on.set()

        assert await reading == (1, 1)
        assert (await load(store)).incarnation == 2


async def test_many_writers_at_once_take_turns(sqlite: OpenSqlite) -> None:
    def count(tx: Transaction) -> None:
        tx.put_note("count", str(int(tx.note("count") or 0) + 1))

    async with sqlite() as store:
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(store.transact(count))

        assert await store.read(lambda s: s.note("count")) == "50"


async def test_a_reader_can_not_write(sqlite: OpenSqlite) -> None:
    async with sqlite() as store:
        assert store._reader is not None
        with pytest.raises(StoreUnavailableError, match="readonly"):
            await store._reader.run(
                lambda s: connection_of(s).execute("DELETE FROM scopes"), unchanged
            )


# --- waking --------------------------------------------------------------------------------------


async def test_wakes_follow_the_rules_of_the_server_that_opened_the_store(
    path: Path, clock: VirtualClock, sqlite: OpenSqlite
) -> None:
    """I28"""
    async with sqlite() as store:
        await keep(store, a_scope(last_read_at=NOON - HOUR))
        before = await cache(store)
    impatient = partial(lifecycle.next_wake, rules=Rules(silence=HOUR))

    async with SqliteStore(path, clock, next_wake=impatient) as store:
        due, _ = await store.transact(lambda tx: tx.claim_due(9))
        assert due == [SCOPE1]
        assert await cache(store) == before
    async with sqlite() as store:
        due, _ = await store.transact(lambda tx: tx.claim_due(9))
        assert due == []


async def test_a_store_opened_by_the_same_rules_again_looks_at_no_scope(
    sqlite: OpenSqlite, path: Path, clock: VirtualClock
) -> None:
    """P6: that would be all of a large fleet."""
    async with sqlite() as store:
        await keep(store, a_scope(an_event(A), last_read_at=NOON - HOUR))
    reckoned: list[Scope] = []

    def next_wake(scope: Scope) -> datetime | None:
        reckoned.append(scope)
        return lifecycle.next_wake(scope, rules=Rules())

    async with SqliteStore(path, clock, next_wake=next_wake) as store:
        assert await store.read(lambda s: s.next_wake()) == NOON

    assert [scope.id for scope in reckoned if scope.id == SCOPE1] == []


# --- speed ---------------------------------------------------------------------------------------


async def test_no_question_goes_through_a_whole_table_to_find_a_few_rows(
    sqlite: OpenSqlite,
) -> None:
    def ask(snapshot: SqliteSnapshot) -> list[str]:
        asked: list[str] = []
        connection = connection_of(snapshot)
        connection.set_trace_callback(asked.append)
        ask_for_a_few_rows(snapshot)
        if isinstance(snapshot, SqliteTransaction):
            snapshot.claim_due(9)
        connection.set_trace_callback(None)
        plans = [
            str(step["detail"])
            for sql in asked
            for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}")
        ]
        assert len(plans) >= len(asked) > 17
        return plans

    async with sqlite() as store:
        await keep(store, a_scope(an_event(A)))
        assert store._reader is not None
        plans = await store._reader.run(ask, unchanged)
        plans += await store._writer.run(ask, unchanged)

    tables = ("scopes", "resources", "events", "history", "declarations", "operations")
    scans = [f"SCAN {table}" for table in tables]
    assert [plan for plan in plans if plan.startswith(tuple(scans)) and "INDEX" not in plan] == []
    for index in ("scopes_by_folded (folded>", "autoindex_declarations_1 (folded>"):
        assert [plan for plan in plans if index in plan] != []


async def test_messages_of_a_scope_that_wait_are_found_without_reading_all_that_wait(
    sqlite: OpenSqlite,
) -> None:
    """VMs are removed while thousands may be waiting, and each removal asks."""

    def ask(tx: SqliteTransaction) -> list[str]:
        asked: list[str] = []
        connection = connection_of(tx)
        connection.set_trace_callback(asked.append)
        outbox.place_waiting(tx._writable, SCOPE1, {})
        connection.set_trace_callback(None)
        [sql] = asked
        return [str(step["detail"]) for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]

    async with sqlite() as store:
        plan = await store._writer.run(ask, unchanged)

    assert plan == ["SEARCH outbox USING INDEX outbox_of_scope (scope_id=?)"]
