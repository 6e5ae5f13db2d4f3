"""The store on PostgreSQL: several nodes at once, a pooler in between, failovers, clocks, leases."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path

import psycopg
import pytest

from forewarned.clock import wall_clock
from forewarned.config.values import DatabaseUrl
from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import EventSource, EventType
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.errors import LeaseLostError, StoreUnavailableError
from forewarned.service.events.schedule import EventOrder, Scheduler
from forewarned.service.nodes import is_fresh
from forewarned.service.ports import Transaction
from forewarned.service.records import Node
from forewarned.storage.errors import (
    CannotOpenError,
    FailedDatabaseError,
    LostConnectionError,
    OtherRulesError,
    UnfinishedCopyError,
)
from forewarned.storage.postgres.nodes import listing
from forewarned.storage.postgres.nodes.node_store import node_store
from forewarned.storage.postgres.store import Guard, PostgresStore
from forewarned.storage.relational.snapshot import UNFINISHED
from tests.builders import (
    DAY,
    HOUR,
    NOON,
    OPERATOR,
    a_binding,
    a_node_record,
    a_resource,
    a_scope,
    event_id,
)
from tests.postgresql.databases import Database
from tests.postgresql.failures import Failure, fail_writing
from tests.postgresql.pgbouncer import pgbouncer
from tests.postgresql.servers import PostgresServer, private_folder
from tests.postgresql.standby import server_pair
from tests.storage.store_calls import keep, load, settle_in

SERVES = a_node_record().serves
NEXT_WAKE = partial(lifecycle.next_wake, rules=Rules())
SCOPES = [ScopeId(f"scope{number}") for number in range(1, 9)]


def a_node(
    url: str,
    name: str = "one",
    *,
    rules: dict[str, str] | None = None,
    guard: Guard | None = None,
    now: Callable[[], datetime] = lambda: NOON,
) -> PostgresStore:
    return PostgresStore(
        DatabaseUrl.parse(url),
        node=a_node_record(name),
        next_wake=NEXT_WAKE,
        rules=rules or {},
        guard=guard,
        read_clock=lambda _: now(),
    )


@asynccontextmanager
async def nodes(url: str, count: int) -> AsyncIterator[list[PostgresStore]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(a_node(url, f"node{number}")) for number in range(count)
        ]


async def keep_scopes(store: PostgresStore) -> None:
    await keep(
        store,
        *(a_scope(id=each, resources=[a_resource(f"vm-{each}")]) for each in SCOPES),
    )


def move(*scope_ids: ScopeId) -> Callable[[Transaction], None]:
    """Count one up in each of these scopes, in this order."""

    def function(tx: Transaction) -> None:
        for scope_id in scope_ids:
            scope = tx.load(scope_id)
            moved = replace(scope, incarnation=scope.incarnation + 1)
            tx.save(Change(scope=moved), by=OPERATOR)

    return function


async def counts(store: PostgresStore) -> dict[ScopeId, int]:
    """How often each scope has been moved."""
    found = await store.read(lambda snapshot: list(snapshot.scopes()))
    return {saved.scope.id: saved.scope.incarnation - a_scope().incarnation for saved in found}


# --- several nodes -------------------------------------------------------------------------------


async def test_nodes_that_change_the_same_scopes_lose_nothing(database: Database) -> None:
    """I23: in groups and alone, in any order of scopes."""
    wanted = dict.fromkeys(SCOPES, 0)
    chosen = random.Random(1)
    async with nodes(database.url, 2) as stores:
        await keep_scopes(stores[0])
        changes = []
        for number in range(120):
            several = chosen.sample(SCOPES, 1 + number % 3)
            for scope_id in several:
                wanted[scope_id] += 1
            touching = several if number % 2 else ()
            changes.append(stores[number % 2].transact(move(*several), touching=touching))
        await asyncio.gather(*changes)

        assert await counts(stores[1]) == wanted


async def test_what_one_node_commits_another_reads_next(database: Database) -> None:
    async with nodes(database.url, 2) as (one, other):
        await keep_scopes(one)
        for number in range(1, 20):
            writer, reader = (one, other) if number % 2 else (other, one)
            await writer.transact(move(SCOPES[0]), touching=[SCOPES[0]])
            assert (await counts(reader))[SCOPES[0]] == number


async def test_a_read_and_a_save_at_once_both_count(database: Database) -> None:
    """I28."""
    async with nodes(database.url, 2) as (one, other):
        await keep(one, a_scope(last_read_at=NOON - DAY / 2))
        await asyncio.gather(
            *(one.transact(move(SCOPES[0])) for _ in range(10)),
            other.mark_read({SCOPES[0]: NOON}, older_by=HOUR),
        )

        scope = await load(one)
        assert (scope.last_read_at, scope.incarnation) == (NOON, a_scope().incarnation + 10)


async def test_all_works_through_pgbouncer(postgres_server: PostgresServer) -> None:
    """In transaction mode, with fewer sessions than connections of the nodes."""
    from tests.postgresql.databases import Databases

    made = Databases(postgres_server.url())
    with (
        made.empty() as database,
        private_folder() as folder,
        pgbouncer(postgres_server, folder, sessions=3) as pooler,
    ):
        async with nodes(pooler.url(database.name), 2) as stores:
            await keep_scopes(stores[0])
            await asyncio.gather(
                *(
                    stores[number % 2].transact(move(SCOPES[number % 8]), touching=touching)
                    for number in range(80)
                    for touching in ([SCOPES[number % 8]], ())
                )
            )
            async with stores[0].lease("fleet") as lease:
                await stores[0].transact(lease.check)

            assert await counts(stores[1]) == dict.fromkeys(SCOPES, 20)


async def test_nothing_answered_is_lost_in_a_failover(tmp_path: Path) -> None:
    """I14, I23: kill -9 of the primary, whose standby has all that was answered."""
    answered = dict.fromkeys(SCOPES, 0)
    unknown = dict.fromkeys(SCOPES, 0)
    with private_folder() as folder, server_pair(folder) as pair:
        async with nodes(pair.url(), 2) as stores:
            await keep_scopes(stores[0])
            has_failed = asyncio.Event()

            async def write(scope_id: ScopeId, store: PostgresStore) -> None:
                until = None
                while until is None or answered[scope_id] < until:
                    try:
                        await store.transact(move(scope_id), touching=[scope_id])
                    except StoreUnavailableError:
                        unknown[scope_id] += 1
                        await asyncio.sleep(0.05)
                    else:
                        answered[scope_id] += 1
                    if has_failed.is_set() and until is None:
                        until = answered[scope_id] + 3

            writers = [
                asyncio.create_task(write(scope_id, stores[number % 2]))
                for number, scope_id in enumerate(SCOPES)
            ]
            await asyncio.sleep(0.5)
            await asyncio.to_thread(pair.fail_over)
            has_failed.set()
            async with asyncio.timeout(60):
                await asyncio.gather(*writers)
            found = await counts(stores[0])

    assert all(
        answered[each] <= found[each] <= answered[each] + unknown[each] for each in SCOPES
    ), (answered, unknown, found)


# --- time ----------------------------------------------------------------------------------------


async def test_a_node_whose_database_is_in_the_future_changes_nothing(database: Database) -> None:
    """I4."""
    is_ahead = False

    def guard(_: datetime) -> None:
        if is_ahead:
            raise StoreUnavailableError("the clock is ahead")

    async with a_node(database.url, guard=guard) as store:
        await keep(store, a_scope())
        is_ahead = True
        with pytest.raises(StoreUnavailableError, match="the clock is ahead"):
            await store.transact(move(SCOPES[0]), touching=[SCOPES[0]])

        assert (await load(store)).incarnation == a_scope().incarnation


async def test_a_store_whose_clock_is_ahead_is_not_opened(database: Database) -> None:
    """I4."""

    def guard(_: datetime) -> None:
        raise StoreUnavailableError("the clock is ahead")

    with pytest.raises(CannotOpenError, match="the clock is ahead"):
        async with a_node(database.url, guard=guard):
            pass


@pytest.mark.parametrize(
    ("failure", "expected"),
    [(Failure.LOST, LostConnectionError), (Failure.FULL, FailedDatabaseError)],
)
async def test_a_database_that_fails_while_a_node_starts_is_a_clear_error(
    database: Database, failure: Failure, expected: type[CannotOpenError]
) -> None:
    """F9."""
    fail_writing(database, "nodes", failure)

    with pytest.raises(expected, match="and try again"):
        async with a_node(database.url):
            pass


async def test_a_node_goes_by_the_databases_clock(database: Database, tmp_path: Path) -> None:
    async with node_store(
        DatabaseUrl(database.url), tmp_path, serves=SERVES, next_wake=NEXT_WAKE, rules={}
    ) as store:
        before = wall_clock()
        written, _ = await store.transact(lambda tx: tx.now)
        read = await store.read(lambda snapshot: snapshot.now)

    assert before - timedelta(seconds=1) < written < read < before + timedelta(minutes=1)


# --- rules and leases ----------------------------------------------------------------------------


def beat(database: Database, node: Node) -> None:
    with database.connect() as connection:
        connection.autocommit = True
        listing.beat(connection, node, lag=timedelta(milliseconds=7))


async def test_a_node_with_other_rules_does_not_start_while_others_run(database: Database) -> None:
    """Nor if they have only just begun to start: the first sign of life comes after a long load."""
    async with a_node(database.url, "one", rules={"silence": "1d", "approve": "any"}):
        with pytest.raises(OtherRulesError, match="silence is 1d there and 2d here") as refused:
            async with a_node(database.url, "two", rules={"silence": "2d", "approve": "any"}):
                pass
        assert refused.value.nodes == ("one",)
    # The last one to run may change its mind.
    async with a_node(database.url, "one", rules={"silence": "2d", "approve": "any"}):
        pass


async def test_a_node_that_was_silent_while_others_agreed_on_other_rules_stops_writing(
    database: Database,
) -> None:
    async with a_node(database.url, "one", rules={"silence": "1d"}) as silent:
        await keep(silent, a_scope())
        database.ask("UPDATE nodes SET seen_at = 0")
        async with a_node(database.url, "two", rules={"silence": "2d"}) as other:
            await other.transact(move(SCOPES[0]), touching=[SCOPES[0]])
            for touching in ([], [SCOPES[0]]):
                with pytest.raises(StoreUnavailableError, match="silence is 2d there and 1d here"):
                    await silent.transact(move(SCOPES[0]), touching=touching)

        assert (await load(silent)).incarnation == a_scope().incarnation + 1


async def test_a_node_that_has_become_too_old_stops_writing_and_goes_on_reading(
    database: Database,
) -> None:
    async with a_node(database.url) as store:
        await keep(store, a_scope())
        database.ask("UPDATE store SET oldest_code = 100")
        with pytest.raises(StoreUnavailableError, match="too old to use it"):
            await store.transact(move(SCOPES[0]))

        assert (await load(store)).incarnation == a_scope().incarnation


async def test_nodes_that_start_together_with_a_new_silence_wait_for_the_first(
    database: Database,
) -> None:
    """It computes when each scope wakes, which takes long in a large fleet. The others need not."""
    waiting = """
        SELECT 1 FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND clock_timestamp() - query_start > '1200 ms'
    """
    async with a_node(database.url):
        pass
    next_wake = partial(lifecycle.next_wake, rules=Rules(silence=2 * DAY))
    second = PostgresStore(
        DatabaseUrl.parse(database.url), node=a_node_record("two"), next_wake=next_wake, rules={}
    )

    with database.connect() as first:
        first.execute("SELECT * FROM notes FOR UPDATE")
        opening = asyncio.create_task(second.__aenter__())
        async with asyncio.timeout(20):
            while not await asyncio.to_thread(database.ask, waiting):  # noqa: ASYNC110  # no one tells
                await asyncio.sleep(0.05)
    async with await opening:
        assert second.commit_counts.reruns == 0


async def test_a_node_keeps_its_id(database: Database, tmp_path: Path) -> None:
    for _ in range(2):
        async with (
            node_store(
                DatabaseUrl(database.url), tmp_path, serves=SERVES, next_wake=NEXT_WAKE, rules={}
            ) as store,
            store.lease("fleet"),
        ):
            pass

    [[holder]] = database.ask("SELECT holder FROM leases")
    assert (tmp_path / "node-id").read_text().strip() == holder


async def test_a_lease_of_a_node_that_is_gone_is_taken_over(database: Database) -> None:
    now = NOON
    async with (
        a_node(database.url, "one", now=lambda: now) as one,
        a_node(database.url, "two", now=lambda: now) as two,
    ):
        async with one.lease("fleet") as lost:
            now += timedelta(seconds=14)
            await one.transact(lost.check)
            now += timedelta(seconds=16)
            async with two.lease("fleet") as held:
                with pytest.raises(LeaseLostError):
                    await one.transact(lost.check)
                await two.transact(held.check)
        # Giving back what was lost takes nothing from the next holder.
        async with two.lease("fleet") as held:
            await two.transact(held.check)


async def test_a_function_that_breaks_the_databases_rules_is_told_so(database: Database) -> None:
    """In a pipeline an error comes late: with the next question, or with the commit."""

    def wrong(tx: Transaction) -> None:
        tx._writable.write("UPDATE scopes SET revision = NULL")  # type: ignore[attr-defined]

    async with a_node(database.url) as store:
        await keep(store, a_scope())
        with pytest.raises(StoreUnavailableError, match="null value") as refused:
            await store.transact(wrong)
        await store.transact(move(SCOPES[0]))

    assert isinstance(refused.value.__cause__, psycopg.Error)


# --- the nodes -----------------------------------------------------------------------------------


async def test_nodes_are_listed_with_what_they_serve_and_what_the_store_says(
    database: Database,
) -> None:
    async with a_node(database.url, "one") as one, a_node(database.url, "two") as two:
        for store in (one, two):
            beat(database, store.node)
        found = await one.nodes()

    assert [seen.node for seen in found.nodes] == [one.node, two.node]
    assert {seen.lag for seen in found.nodes} == {timedelta(milliseconds=7)}
    assert all(is_fresh(seen, now=found.now) for seen in found.nodes)
    assert (found.epoch, found.standbys) == (1, "")


async def test_a_node_that_comes_back_as_another_version_is_listed_as_that(
    database: Database,
) -> None:
    async with a_node(database.url, "one") as store:
        for version in ("1.0", "2.0"):
            beat(database, a_node_record("one", version=version))
        [seen] = (await store.nodes()).nodes

    assert seen.node.version == "2.0"


async def test_a_node_goes_on_where_a_newer_one_has_migrated_its_tables(
    database: Database,
) -> None:
    """PostgreSQL refuses prepared statements whose columns have changed since."""
    scope_id = ScopeId("scope1")
    async with a_node(database.url) as store:
        await store.transact(partial(settle_in, scope=a_scope(id=scope_id)))
        for _ in range(10):
            await store.transact(lambda tx: tx.load(scope_id), touching=[scope_id])
            await store.read(lambda snapshot: snapshot.load(scope_id))
        for table in ("scopes", "resources", "events"):
            database.ask(f"ALTER TABLE {table} ADD COLUMN newer bigint DEFAULT 0")

        for _ in range(10):
            await store.transact(lambda tx: tx.load(scope_id), touching=[scope_id])
            found = await store.read(lambda snapshot: snapshot.load(scope_id))

    assert found.id == scope_id


async def test_an_unfinished_copy_is_not_opened(database: Database) -> None:
    database.ask("INSERT INTO notes VALUES (%s, 'another')", UNFINISHED)

    with pytest.raises(UnfinishedCopyError, match="continues where it stopped"):
        await a_node(database.url).__aenter__()


async def test_events_of_a_thousand_vms_are_scheduled_at_once(database: Database) -> None:
    """I2: what takes long to lock is decided after it is locked, not given up as too old."""
    vms = [ResourceName(f"vm{number}") for number in range(1000)]

    def settle(tx: Transaction, some: list[ResourceName]) -> None:
        for vm in some:
            settle_in(tx, a_scope(id=f"scope-of-{vm}", resources=[a_resource(vm)]))
        tx.bind_all([a_binding(vm, scope_id=f"scope-of-{vm}", address="") for vm in some])

    async with a_node(database.url) as store:
        for first in range(0, len(vms), 100):
            await store.transact(partial(settle, some=vms[first : first + 100]))
        scheduler = Scheduler(Engine(store), Rules(), map(event_id, count(1)).__next__)
        order = EventOrder(resources=tuple(vms), type=EventType.REBOOT, source=EventSource.PLATFORM)
        scheduled = await scheduler.schedule(order, by=OPERATOR)

    assert len(scheduled) == len(vms)
    assert database.ask("SELECT count(*) FROM events") == [(len(vms),)]
